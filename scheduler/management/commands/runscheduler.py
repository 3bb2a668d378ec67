"""runscheduler: take part in the election and, as master, tick the timetable until SIGTERM."""

from typing import Any

from django.core.management.base import BaseCommand

from scheduler.ticker import Ticker
from workqueue.loop import leave


class Command(BaseCommand):
    """One scheduler process."""

    help = (
        "Takes part in the election; the master enqueues what is due, the others stand by. Start one per server: "
        "two is enough for a take-over, more do no harm. SIGTERM resigns, so that a standby takes over at once; "
        "a second SIGTERM ends without; SIGUSR1 dumps stacks. Example: manage.py runscheduler. "
        "Who is master: manage.py leader."
    )
    requires_migrations_checks = False
    # `start` and CI run them; here they would load every handler before the first look.
    requires_system_checks: list[str] = []

    def handle(self, *_: Any, **__: Any) -> None:
        """Run until told to stop."""
        leave(Ticker().run())
