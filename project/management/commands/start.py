"""start: everything that this installation's FALCON_MODE asks for, in one process tree."""

import os
import shutil
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections

from project import demo, upgrade, welcome
from project.modes import MODES
from project.preflight import preflight
from project.probes import DRAINING
from project.supervise import Supervisor


class Command(BaseCommand):
    """The entry point of the container and of a newcomer."""

    help = (
        "Brings the schema up to date and runs the processes of FALCON_MODE (all, api, web, worker) until SIGTERM "
        "or Ctrl-C; then workers finish what they have begun, for at most WORKER_DRAIN_TIMEOUT_S, and the web "
        "process is stopped last. A second signal ends at once. Exit codes: 0 stopped in order, 1 somebody had to "
        "be killed, 69 the database did not answer, 78 the configuration or the schema must be corrected first. "
        "Example: manage.py start --demo"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--demo."""
        parser.add_argument(
            "--demo",
            action="store_true",
            help="make three tenants with work to do; not in production",
        )

    def handle(self, *_: Any, demo: bool, **__: Any) -> None:
        """Prepare, then supervise."""
        wake_folder = tempfile.mkdtemp(prefix="millrace-")
        try:
            code = self._run(with_demo=demo, wake_folder=Path(wake_folder))
        except upgrade.Refused as refused:
            self.stderr.write(f"millrace: {refused}", self.style.NOTICE)
            code = refused.exit_code
        finally:
            shutil.rmtree(wake_folder, ignore_errors=True)
        raise SystemExit(code)

    def _run(self, *, with_demo: bool, wake_folder: Path) -> int:
        mode = MODES[settings.FALCON_MODE]
        if with_demo and settings.PRODUCTION:
            raise upgrade.Refused(
                "--demo makes tenants and sends their e-mails nowhere: not with DJANGO_ENV=production"
            )
        preflight(mode)
        environment = {**os.environ, "MILLRACE_WAKE_SOCKET": str(wake_folder)}
        upgrade.wait_for_database()
        processes, lines = list(mode.processes), dict[str, str]()
        if mode.migrates:
            upgrade.upgrade(environment=environment)
        if with_demo:
            outside = demo.OutsideWorld()
            demo.fill(outside)
            environment |= outside.environment
            processes.insert(0, outside.process)
            lines = outside.lines
        if mode.admin:
            self._prepare_admin(lines, migrated=mode.migrates)
        connections.close_all()
        return Supervisor(
            processes,
            environment=environment,
            folder=settings.BASE_DIR,
            drain=settings.WORKER_DRAIN_TIMEOUT.total_seconds(),
            on_drain=(wake_folder / DRAINING).touch,
        ).run()

    def _prepare_admin(self, lines: dict[str, str], *, migrated: bool) -> None:
        if settings.PRODUCTION:
            if not (Path(settings.STATIC_ROOT or "") / "staticfiles.json").exists():
                call_command("collectstatic", interactive=False, verbosity=0)
        elif migrated:
            password = welcome.administrator()
            self.stdout.write(welcome.banner(password=password, more=lines))
            self.stdout.flush()
