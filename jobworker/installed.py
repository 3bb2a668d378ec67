"""installed: which external programs this machine has, and what that means for its tiers."""

import os
import shutil
from collections.abc import Iterable

from django.conf import settings

from jobworker.caps import Caps, Reduction
from jobworker.registry import JobType

FOLDER = "JOB_ROOT"  # stands among the programs: types with one need a workspace


def missing(row: JobType) -> list[str]:
    """What the type needs and this machine has not: programs, or a folder to work in."""
    gone = [program for program in row.programs if shutil.which(program) is None]
    return [*gone, FOLDER] if row.programs and not _writable() else gone


def _writable() -> bool:
    """Whether workspaces can be made."""
    try:
        settings.JOB_ROOT.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(settings.JOB_ROOT, os.W_OK | os.X_OK)


def lacks(rows: Iterable[JobType]) -> dict[str, list[str]]:
    """Program that is missing here -> the types that cannot run for that."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for program in missing(row):
            found.setdefault(program, []).append(row.type)
    return found


def lacking(rows: Iterable[JobType], caps: Caps, *, where: str) -> list[Reduction]:
    """The tiers of which this machine can run no type at all."""
    rows = list(rows)
    found = []
    for tier, cap in caps.tiers.items():
        gone = [missing(row) for row in rows if row.tier == tier]
        if cap and gone and all(gone):
            why = sentence(gone[0][0], where=where, tier=tier)
            found.append(Reduction(what=tier, asked=cap, used=0, why=why))
    return found


def sentence(program: str, *, where: str, tier: str) -> str:
    """What to do about what is missing."""
    if program == FOLDER:
        return (
            f"JOB_ROOT {settings.JOB_ROOT} is no folder that {where} can write; "
            f"set it to one or set {tier} to 0"
        )
    return f"{program} is not on PATH of {where}; install it or set {tier} to 0"
