"""start: everything that this installation's FALCON_MODE asks for, in one process tree."""

import os
import signal
from argparse import ArgumentParser
from typing import Any, NoReturn

from django.core.management.base import BaseCommand

from project.launch import launch
from project.preflight import system_checks
from project.upgrade import Refused
from workqueue.loop import leave


class Command(BaseCommand):
    """The entry point of the container and of a newcomer."""

    help = (
        "Brings the schema up to date and runs the processes of FALCON_MODE (all, api, web, worker, jobworker) "
        "until SIGTERM or Ctrl-C; then workers finish what they have begun, for at most WORKER_DRAIN_TIMEOUT_S, "
        "and the web process is stopped last. A second signal ends at once. Exit codes: 0 stopped in order, 1 "
        "somebody had to be killed, 69 the database did not answer, 78 the configuration or the schema must be "
        "corrected first, 143 (130 by Ctrl-C) a second signal, or one before the first process was started. "
        "Example: manage.py start --demo"
    )
    # Some checks ask the database, which may not be there yet: run when it is.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--demo."""
        parser.add_argument(
            "--demo",
            action="store_true",
            help="make three tenants with work to do; not in production",
        )

    def handle(self, *_: Any, demo: bool, **__: Any) -> None:
        """Launch; what is refused is one line and an exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)  # until the supervisor hears them
        try:
            code = launch(
                with_demo=demo,
                environment=os.environ,
                check=system_checks,
                say=self._say,
            )
        except Refused as refused:
            self.stderr.write(f"millrace: {refused}", self.style.NOTICE)
            code = refused.exit_code
        except SystemExit as told:
            code = int(told.code or 0)
        leave(code)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _end(number: int, _: object) -> NoReturn:
    """Nothing runs yet, so nothing drains; what was begun, a migration, is rolled back."""
    raise SystemExit(128 + number)
