"""preflight: what would stop a process of `start` a second later, said in one line now.

What the machine does not give is asked by `showconfig` too, which says the same.
"""

import errno
import logging
import socket
import tempfile
from pathlib import Path

from django.conf import settings
from django.core import checks

from project.modes import JOBWORKER, Mode
from project.upgrade import Refused

logger = logging.getLogger(__name__)


def preflight(mode: Mode) -> None:
    """Refused: the machine does not give what is asked for, or the port is taken."""
    check_machine(mode)
    if mode.serves:
        _check_port(settings.BIND, settings.PORT)


def check_machine(mode: Mode) -> None:
    """Refused: a folder that cannot be one or be written, an address that is not here."""
    if settings.SQLITE_FILE:
        _check_folder(settings.SQLITE_FILE)
    _check_in_the_way("ARCHIVE_ROOT", settings.ARCHIVE_ROOT)
    if JOBWORKER in mode.processes:
        _check_in_the_way("JOB_ROOT", settings.JOB_ROOT)
        if settings.JOB_MODULES and not Path(settings.JOB_MODULES).is_dir():
            raise Refused(
                f"JOB_MODULES '{settings.JOB_MODULES}' is no folder; set it to one, or leave it out"
            )
    if mode.serves:
        _check_port(settings.BIND, 0)  # any port: only the address counts


def system_checks() -> None:
    """Django's checks, a line of the log each. Refused: one of them is an error."""
    told = [one for one in checks.run_checks() if not one.is_silenced()]
    for one in told:
        said = " ".join(f"{one.msg} {one.hint or ''}".split())
        logger.log(one.level, "%s: %s", one.id, said)
    if any(one.is_serious() for one in told):
        raise Refused(
            "the system checks found errors; the lines above say what to correct"
        )


def _check_folder(database: Path) -> None:
    """SQLite writes its journal beside the file, so the folder counts too."""
    try:
        with tempfile.TemporaryFile(dir=database.parent):
            pass
        if database.exists():
            with database.open("ab"):
                pass
    except OSError as problem:
        raise Refused(
            f"the database {database} cannot be written ({problem.strerror}); "
            "correct the rights of its folder, or set DATABASE_URL=sqlite:////path/of/file"
        ) from None


def _check_in_the_way(name: str, root: Path) -> None:
    """It is made when the first file is; what is in its way is there already."""
    for path in (root, *root.parents):
        if path.exists() and not path.is_dir():
            raise Refused(
                f"{name} '{root}' cannot be made: {path} is no folder; set it to a folder"
            )


def _check_port(host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except socket.gaierror:
        raise Refused(f"BIND {host!r} is no address of this machine") from None
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            text = f"port {port} is in use; stop what listens there, or set PORT to another"
        elif problem.errno == errno.EACCES:
            text = f"port {port} needs more rights than this user has; set PORT to 1024 or more"
        elif problem.errno == errno.EADDRNOTAVAIL:
            text = f"BIND {host!r} is no address of this machine"
        else:
            text = f"port {port} cannot be opened ({problem.strerror})"
        raise Refused(text) from None
