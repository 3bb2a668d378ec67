"""launch: what `start` does, in order: look, wait, migrate, greet, and run the processes.

Nothing here stays undone half way: whatever is refused is refused before the first
process is started. Raises Refused.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from project import demo, upgrade, welcome
from project.modes import MODES, Mode, Process
from project.preflight import preflight
from project.probes import DRAINING
from project.supervise import Supervisor
from workqueue import pooler


def launch(
    *,
    with_demo: bool,
    environment: Mapping[str, str],
    check: Callable[[], None],  # the system checks
    say: Callable[[str], None],
) -> int:
    """Run FALCON_MODE until told to stop; return the exit code."""
    mode = MODES[settings.FALCON_MODE]
    wake_folder = _wake_folder()
    outside = None
    try:
        given = {**environment, "MILLRACE_WAKE_SOCKET": str(wake_folder)}
        if with_demo and settings.PRODUCTION:
            raise upgrade.Refused(
                "--demo makes tenants and keeps their e-mails: not with DJANGO_ENV=production"
            )
        if with_demo:
            outside = demo.OutsideWorld()  # holds its lock until the end
        _prepare(mode, environment=given, check=check)
        # Before the demo, which has something to tell the administrator.
        first = mode.admin and mode.migrates
        password = welcome.administrator() if first else None
        processes, more = mode.processes, dict[str, str]()
        if outside:
            processes, more = _with_demo(mode, given, outside), outside.lines
        if mode.admin:
            _prepare_admin(mode, password=password, more=more, say=say)
        connections.close_all()
        return Supervisor(
            processes,
            environment=given,
            folder=settings.BASE_DIR,
            drain=settings.WORKER_DRAIN_TIMEOUT.total_seconds(),
            on_drain=partial(_tell_probes, wake_folder),
        ).run()
    finally:
        if outside:
            outside.close()
        shutil.rmtree(wake_folder, ignore_errors=True)


def _wake_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="millrace-"))
    except OSError as problem:
        raise upgrade.Refused(
            f"no temporary folder can be made ({problem.strerror}); set TMPDIR to a folder that can be written"
        ) from None


def _prepare(
    mode: Mode, *, environment: dict[str, str], check: Callable[[], None]
) -> None:
    preflight(mode)
    upgrade.wait_for_database()
    if wrong := pooler.trouble():
        raise upgrade.Refused(wrong)
    check()
    if mode.migrates:
        upgrade.upgrade(environment=environment)


def _with_demo(
    mode: Mode, environment: dict[str, str], outside: demo.OutsideWorld
) -> tuple[Process, ...]:
    """The demo's rows; the processes with the outside world first."""
    demo.fill(outside)
    environment |= outside.environment
    return (outside.process, *mode.processes)


def _tell_probes(wake_folder: Path) -> None:
    # What cleans /tmp takes folders in which nothing happens for weeks.
    wake_folder.mkdir(mode=0o700, exist_ok=True)
    (wake_folder / DRAINING).touch()


def _prepare_admin(
    mode: Mode,
    *,
    password: str | None,
    more: dict[str, str],
    say: Callable[[str], None],
) -> None:
    if settings.PRODUCTION:
        if not (Path(settings.STATIC_ROOT or "") / "staticfiles.json").exists():
            _collect()
    elif mode.migrates:
        say(welcome.banner(password=password, more=more))


def _collect() -> None:
    try:
        call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as problem:
        raise upgrade.Refused(
            f"the static files cannot be collected ({problem}); "
            "run manage.py collectstatic once as the owner of this release"
        ) from None
