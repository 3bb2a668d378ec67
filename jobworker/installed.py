"""installed: which external programs this machine has, and what that means for its tiers."""

import shutil
from collections.abc import Iterable

from jobworker.caps import Caps, Reduction
from jobworker.registry import JobType


def missing(row: JobType) -> list[str]:
    """The programs that the type needs and this machine has not."""
    return [program for program in row.programs if shutil.which(program) is None]


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
    """What to do about a program that is missing."""
    return f"{program} is not on PATH of {where}; install it or set {tier} to 0"
