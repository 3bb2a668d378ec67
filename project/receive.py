"""receive: the demo's outside world: e-mails by SMTP and reports by HTTP, kept in files.

A program of its own (`python -m project.receive`), on the loopback only: it takes
anything from anybody. Needs no Django, so that it is there before the first e-mail.
"""

import re
import signal
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

LOOPBACK = "127.0.0.1"
LONGEST_REPORT = 1_000_000  # bytes


class MailFolder:
    """Each e-mail becomes a file that mail programs open."""

    def __init__(self, folder: Path) -> None:
        """Go on counting where the last start ended."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.numbers: Iterator[int] = count(len(list(folder.glob("*.eml"))) + 1)

    async def handle_RCPT(  # noqa: N802
        self,
        server: Any,
        session: Any,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """Take any recipient but nobody, so that a refusal can be seen too."""
        if address.startswith("nobody@"):
            return "550 5.1.1 no such mailbox here"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        """Take one e-mail."""
        to = re.sub(r"[^\w.@-]", "_", ",".join(envelope.rcpt_tos))[:100]
        name = f"{next(self.numbers):04}-{to}.eml"
        (self.folder / name).write_bytes(envelope.original_content or b"")
        return f"250 kept as {name}"


def reports(file: Path) -> type[BaseHTTPRequestHandler]:
    """A handler that appends each report to `file`, a line each."""

    class Reports(BaseHTTPRequestHandler):
        """POST only."""

        def do_POST(self) -> None:
            """Keep the body."""
            size = int(self.headers.get("Content-Length") or 0)
            line = self.rfile.read(min(size, LONGEST_REPORT)).replace(b"\n", b" ")
            with file.open("ab") as kept:
                kept.write(line + b"\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Silent: the file says it."""

    return Reports


def main() -> None:
    """Receive until SIGTERM."""
    parser = ArgumentParser(
        description="Takes e-mails by SMTP and reports by HTTP, and keeps them in files."
    )
    parser.add_argument("--smtp", type=int, required=True, metavar="PORT")
    parser.add_argument("--http", type=int, required=True, metavar="PORT")
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    mail = Controller(
        MailFolder(arguments.folder / "mail"), hostname=LOOPBACK, port=arguments.smtp
    )
    mail.start()
    web = ThreadingHTTPServer(
        (LOOPBACK, arguments.http), reports(arguments.folder / "heartbeats.jsonl")
    )
    with suppress(KeyboardInterrupt):
        web.serve_forever(poll_interval=5)
    web.server_close()
    mail.stop()


if __name__ == "__main__":
    main()
