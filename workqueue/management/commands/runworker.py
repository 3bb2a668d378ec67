"""runworker: claim work items and run them until SIGTERM."""

from typing import Any

from django.core.management.base import BaseCommand

from workqueue.loop import leave
from workqueue.worker import Worker


class Command(BaseCommand):
    """One worker process."""

    help = (
        "Claims work items and runs them until SIGTERM, then drains: what has not begun goes back at once, "
        "the rest gets WORKER_DRAIN_TIMEOUT_S. A second SIGTERM ends at once; SIGUSR1 dumps stacks. "
        "Example: manage.py runworker. How many items at once: Worker Node Configuration in the admin."
    )
    requires_migrations_checks = False
    # `start` and CI run them; here they would load every handler before the first look.
    requires_system_checks: list[str] = []

    def handle(self, *_: Any, **__: Any) -> None:
        """Run until told to stop."""
        leave(Worker().run())
