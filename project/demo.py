"""demo: three tenants with real work, and an outside world on this machine.

Domains fill in their own rows; they are found by dotted path, so that a new domain is
one more line. Everything may be repeated: what exists stays as it is.
"""

import socket
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from project.modes import MANAGE, Process
from workqueue.models import Tenant

TENANTS = (
    ("acme", "Acme", "UTC"),
    ("fjord-bank", "Fjord Bank", "Europe/Oslo"),
    ("granite", "Granite", "America/Denver"),
)
# Each takes the tenants and makes what its domain needs to have something to do.
FILL: tuple[str, ...] = ()


def fill() -> None:
    """Make the tenants and what each domain wants to show with them."""
    tenants = [
        Tenant.objects.get_or_create(
            slug=slug, defaults={"name": name, "time_zone": zone}
        )[0]
        for slug, name, zone in TENANTS
    ]
    for path in FILL:
        cast(Callable[[list[Tenant]], None], import_string(path))(tenants)


class OutsideWorld:
    """Where the demo's e-mails and heartbeats go: files, by way of real SMTP and HTTP."""

    def __init__(self) -> None:
        self.folder = settings.VAR / "demo"
        self.smtp, self.http = _free_port(), _free_port()

    @property
    def process(self) -> Process:
        """The process that receives."""
        ports = ("--smtp", str(self.smtp), "--http", str(self.http))
        command = (*MANAGE, "receive", *ports, "--folder", str(self.folder))
        return Process(name="outside world", command=command, last=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead the other processes there."""
        return {
            "EMAIL_URL": f"smtp://127.0.0.1:{self.smtp}",
            "HEARTBEAT_URL": f"http://127.0.0.1:{self.http}/heartbeat",
        }

    @property
    def lines(self) -> dict[str, str]:
        """What the banner says about it."""
        return {
            "E-mails": f"{self.folder / 'mail'}  (by SMTP on 127.0.0.1:{self.smtp})",
            "Heartbeats": f"{self.folder / 'heartbeats.jsonl'}",
        }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
