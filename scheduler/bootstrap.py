"""bootstrap: what a new master does once, before it ticks.

Built-in records for every tenant, the data steps of this release, start ticks. Each
step is a transaction of the master's, may be repeated, and may fail without stopping
the others: what failed is tried again a minute later. Steps are dotted paths of
functions without arguments, which return a sentence about what they did ("" = nothing);
they must be short, since the server ends the master's transactions after 10 s.
"""

import logging
from collections.abc import Callable
from functools import partial

from django.utils.module_loading import import_string

from audit import clock
from audit.text import gate
from scheduler.election import Election
from scheduler.exceptions import NotMaster, connection_lost
from scheduler.look import Look
from scheduler.models import BootstrapStep, Tick
from scheduler.plan import Plan, pause_of
from scheduler.tick import START, Cause, tick

logger = logging.getLogger(__name__)

# Records that every tenant has from the start. At every term, since a release may add
# some; a tenant's own changes to them stay.
BUILT_IN_RECORDS: tuple[str, ...] = (
    "scheduler.handlers.archival.defaults.make_default_policies",
)

# Changes to data that a release brings: a name for ever, and the function. Once.
DATA_STEPS: tuple[tuple[str, str], ...] = ()


def bootstrap(found: list[Plan], *, seen: Look, election: Election) -> bool:
    """Do what has not been done yet in this term. False: some of it failed."""
    steps: list[tuple[str, Callable[[], object]]] = [
        *(
            (path, partial(_alone, election, partial(_add_records, path)))
            for path in BUILT_IN_RECORDS
        ),
        *(
            (name, partial(_alone, election, partial(_apply, name, path, election)))
            for name, path in DATA_STEPS
        ),
        *(
            (f"start {one.row.key}", partial(_start, one, seen, election))
            for one in found
            if one.row.at_start
        ),
    ]
    done = [_do(name, step, election) for name, step in steps]
    return all(done)


def _do(name: str, step: Callable[[], object], election: Election) -> bool:
    """One step. What it raises is logged, and tried again; what ends the term ends this."""
    try:
        step()
    except NotMaster:
        raise
    except Exception as problem:
        if connection_lost(problem):
            raise
        logger.exception("bootstrap step failed step=%s", name)
        return False
    finally:
        election.passed()
    return True


def _alone(election: Election, act: Callable[[], None]) -> None:
    with election.acting():
        act()


def _add_records(path: str) -> None:
    if said := import_string(path)():
        logger.info("built-in records step=%s: %s", path, said)


def _apply(name: str, path: str, election: Election) -> None:
    """A data step that has not been applied: its change and its record commit together."""
    if BootstrapStep.objects.filter(name=name).exists():
        return
    said = gate(import_string(path)() or "")
    BootstrapStep.objects.create(
        name=name, applied_at=clock.DatabaseNow(), term=election.term or 0, result=said
    )
    logger.info("data step applied step=%s: %s", name, said)


def _start(plan: Plan, seen: Look, election: Election) -> None:
    """Tick a row because a term began, unless it is paused or one ran within its interval."""
    if pause_of(plan.row.key, live=seen.live, now=clock.now()) or _ran_lately(plan):
        return
    # The beginning of the term is its slot: once per term, however often this is repeated.
    begun = seen.lease.since or clock.now()
    tick(plan.row, Cause(trigger=START, slot=begun), election=election, live=seen.live)


def _ran_lately(plan: Plan) -> bool:
    if plan.cadence is None:
        return False
    return Tick.objects.filter(
        handler=plan.row.key, at__gt=clock.earlier(plan.cadence.period)
    ).exists()
