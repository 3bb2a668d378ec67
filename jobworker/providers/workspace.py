"""workspace: the folder in which a job's programs work, and the modules that they work on.

`<JOB_ROOT>/workspaces/<tenant>/<kind>/<name>/<job>`, for this user's eyes only. Removed when the
job succeeded. What a job that did not leaves is kept for KEPT, to be looked at; where
it holds the only record of what was made (errored.tfstate) for KEPT_WITH_STATE. Each
new workspace, and each sweep on this host, removes those that are over their time.
"""

import errno
import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from jobworker.exceptions import JobFailed

SHIPPED = Path(__file__).resolve().parents[1] / "modules"
KEPT = timedelta(days=7)
KEPT_WITH_STATE = timedelta(days=30)
ERRORED = "errored.tfstate"
FETCHED = ".terraform"  # what init fetches; it may be large, and is fetched anew
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def modules(kind: str) -> dict[str, Path]:
    """The modules of a kind by their names: the installation's own before those shipped."""
    found: dict[str, Path] = {}
    for root in (SHIPPED, settings.JOB_MODULES):
        if root and (folder := Path(root) / kind).is_dir():
            found |= {
                each.name: each for each in sorted(folder.iterdir()) if each.is_dir()
            }
    return found


def module(kind: str, name: str) -> Path:
    """The folder of a module. Raises JobFailed where this worker does not have it."""
    found = modules(kind)
    if name not in found:
        raise JobFailed(no_module(kind, name), code="module_missing")
    return found[name]


def no_module(kind: str, name: str) -> str:
    """The sentence for a module that is not here."""
    return f"There is no {kind} module {name}. There are {', '.join(modules(kind))}."


def make(
    *, tenant: str, kind: str, name: str, job: UUID, module: Path, now: datetime
) -> Path:
    """A new workspace with a copy of the module, which may be read-only.

    Raises JobFailed where this user may not write there, or the disk is full.
    """
    prune(now=now)
    folder = place(tenant=tenant, kind=kind, name=name, job=job)
    try:
        _root().mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
        _copy(module, folder)
    except OSError as problem:
        raise JobFailed(
            f"its workspace below JOB_ROOT could not be made: {problem}",
            code="workspace",
        ) from None
    return folder


def place(*, tenant: str, kind: str, name: str, job: UUID) -> Path:
    """Where a job's workspace lies on this host, if it has one."""
    return _root() / tenant / kind / name / str(job)


def write(folder: Path, name: str, values: Any) -> None:
    """A JSON file that only this user may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(folder / name, flags, PRIVATE_FILE), "w") as file:
        json.dump(values, file)


def is_one(folder: Path) -> bool:
    """Whether it lies where workspaces lie: what a row names is not believed."""
    root = _root().resolve()
    return folder.resolve().is_relative_to(root) and folder.resolve() != root


def remove(folder: Path) -> None:
    """Remove a workspace, and the folders above it that it leaves empty."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in list(folder.parents)[:3]:
        try:
            above.rmdir()
        except OSError:
            return  # not empty


def errored() -> list[Path]:
    """The workspaces of this host that hold a state which nobody has taken over."""
    return sorted(each.parent for each in _root().glob(f"*/*/*/*/{ERRORED}"))


def prune(*, now: datetime) -> int:
    """Remove the workspaces of this host that are over their time; how many."""
    removed = 0
    for folder in _root().glob("*/*/*/*"):
        kept = KEPT_WITH_STATE if (folder / ERRORED).exists() else KEPT
        try:
            over = folder.stat().st_mtime < (now - kept).timestamp()
        except OSError:
            continue  # another job has just removed it
        if over:
            remove(folder)
            removed += 1
    return removed


def _root() -> Path:
    return Path(settings.JOB_ROOT) / "workspaces"


def _copy(module: Path, folder: Path, inside: tuple[Path, ...] = ()) -> None:
    """Copy what is in it. Links are followed, also out of JOB_MODULES: a module may run
    any program, so what this user can read is no secret from it. `inside`: the folders
    on the way here.
    """
    real = module.resolve()
    if real in inside:
        told = "a link has no end, it leads back to a folder that it is in"
        raise OSError(errno.ELOOP, told, str(module))
    for source in sorted(module.iterdir()):
        if source.name == FETCHED:
            continue
        copied = folder / source.name
        if source.is_dir():
            copied.mkdir()
            _copy(source, copied, (*inside, real))
        else:
            shutil.copyfile(source, copied)
            copied.chmod(0o700 if os.access(source, os.X_OK) else PRIVATE_FILE)
