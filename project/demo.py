"""demo: three tenants with real work, and an outside world on this machine.

Domains fill in their own rows; they are found by dotted path, so that a new domain is
one more line. Everything may be repeated: what exists stays as it is.
"""

import fcntl
import socket
import sys
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from project.modes import Process
from project.upgrade import Refused
from scheduler import override
from workqueue.models import Tenant

HOST = "127.0.0.1"
EXIT_RUNNING = 75  # sysexits.h: EX_TEMPFAIL
TENANTS = (
    ("acme", "Acme", "UTC"),
    ("fjord-bank", "Fjord Bank", "Europe/Oslo"),
    ("granite", "Granite", "America/Denver"),
)
# Each takes the tenants, and where e-mails can be handed over, and makes what its
# domain needs to have something to do.
FILL = (
    "scheduler.handlers.notifications.demo.demo",
    "scheduler.handlers.archival.demo.demo",
)
# Due once a day or twice an hour: nobody waits that long for a first look.
AT_ONCE = ("archival.apply_policies", "instance.report_heartbeat")


def fill(outside: "OutsideWorld") -> None:
    """Make the tenants and what each domain wants to show with them."""
    tenants = [
        Tenant.objects.get_or_create(
            slug=slug, defaults={"name": name, "time_zone": zone}
        )[0]
        for slug, name, zone in TENANTS
    ]
    for path in FILL:
        function = cast(Callable[..., object], import_string(path))
        function(tenants, smtp_host=HOST, smtp_port=outside.smtp)
    for key in AT_ONCE:
        override.run_now(key, who="demo", origin="command", why="start --demo")


class OutsideWorld:
    """Where the demo's e-mails and heartbeats go: files, by way of real SMTP and HTTP."""

    def __init__(self) -> None:
        self.folder = settings.VAR / "demo"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._alone = (self.folder / "lock").open("w")  # held as long as this lives
        self._refuse_a_second()
        self.smtp, self.http = _free_port(), _free_port()

    def _refuse_a_second(self) -> None:
        """Refused: the demo runs already, and its channels would lead to the other's receiver."""
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._alone.close()
            raise Refused(
                "a demo runs in this folder already: stop it first, or leave out --demo to run more processes beside it",
                exit_code=EXIT_RUNNING,
            ) from None

    def close(self) -> None:
        """Let another demo begin."""
        self._alone.close()

    @property
    def process(self) -> Process:
        """The process that receives."""
        ports = ("--smtp", str(self.smtp), "--http", str(self.http))
        program = (sys.executable, "-m", "project.receive")
        command = (*program, *ports, "--folder", str(self.folder))
        return Process(name="outside world", command=command, last=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead the other processes there."""
        return {
            "EMAIL_URL": f"smtp://{HOST}:{self.smtp}",
            "HEARTBEAT_URL": f"http://{HOST}:{self.http}/heartbeat",
        }

    @property
    def lines(self) -> dict[str, str]:
        """What the banner says about it."""
        return {
            "E-mails": f"{self.folder / 'mail'}  (by SMTP on {HOST}:{self.smtp})",
            "Heartbeats": f"{self.folder / 'heartbeats.jsonl'}",
            "Archive": str(settings.ARCHIVE_ROOT),
            "A demo cluster": f"{settings.BASE_URL}/admin/jobs/new/cluster_provision/?name=demo&tenant=acme",
        }


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port
