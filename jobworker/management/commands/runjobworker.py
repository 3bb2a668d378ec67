"""runjobworker: claim long jobs and run them until SIGTERM."""

from typing import Any

from django.core.management.base import BaseCommand

from jobworker.supervisor import Supervisor
from workqueue.loop import leave


class Command(BaseCommand):
    """One job worker process."""

    help = (
        "Claims long jobs and runs them until SIGTERM, then drains: it claims nothing more, what runs "
        "gets WORKER_DRAIN_TIMEOUT_S, external programs are interrupted 8 s before its end, and the rest "
        "is failed, never started again. A second SIGTERM ends at once; SIGUSR1 dumps stacks. "
        "Example: manage.py runjobworker. How many jobs at once: Job Worker in the admin's Global Settings."
    )
    requires_migrations_checks = False
    # `start` and CI run them; here they would load every job type before the first look.
    requires_system_checks: list[str] = []

    def handle(self, *_: Any, **__: Any) -> None:
        """Run until told to stop."""
        leave(Supervisor().run())
