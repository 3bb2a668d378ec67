"""receive: the demo's outside world: e-mails by SMTP and reports by HTTP, kept in files."""

import re
import signal
from argparse import ArgumentParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope
from django.core.management.base import BaseCommand

from audit import clock

LOOPBACK = "127.0.0.1"  # never reachable from elsewhere: it takes anything from anybody


class MailFolder:
    """Each e-mail becomes a file that mail programs open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        """Take one e-mail."""
        now = clock.now()
        to = re.sub(r"[^\w.@-]", "_", ",".join(envelope.rcpt_tos))[:100]
        name = f"{now:%Y%m%d-%H%M%S}-{clock.uuid7().hex[-6:]}-{to}.eml"
        (self.folder / name).write_bytes(envelope.original_content or b"")
        return "250 kept"


def reports(file: Path) -> type[BaseHTTPRequestHandler]:
    """A handler that appends each report to `file`, a line each."""

    class Reports(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            line = self.rfile.read(min(size, 1_000_000)).replace(b"\n", b" ")
            with file.open("ab") as kept:
                kept.write(line + b"\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Silent: the file says it."""

    return Reports


class Command(BaseCommand):
    """Runs until SIGTERM."""

    help = (
        "The demo's outside world, on the loopback only: takes e-mails by SMTP and reports by HTTP, and keeps "
        "them in files. Example: manage.py receive --smtp 2525 --http 2580 --folder /tmp/received"
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Ports and the folder."""
        parser.add_argument("--smtp", type=int, required=True, metavar="PORT")
        parser.add_argument("--http", type=int, required=True, metavar="PORT")
        parser.add_argument("--folder", type=Path, required=True)

    def handle(self, *_: Any, smtp: int, http: int, folder: Path, **__: Any) -> None:
        """Receive until told to stop."""
        mail = Controller(MailFolder(folder / "mail"), hostname=LOOPBACK, port=smtp)
        mail.start()
        web = ThreadingHTTPServer(
            (LOOPBACK, http), reports(folder / "heartbeats.jsonl")
        )
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            web.serve_forever(poll_interval=5)
        except KeyboardInterrupt:
            pass
        finally:
            web.server_close()
            mail.stop()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
