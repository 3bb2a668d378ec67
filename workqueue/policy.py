"""policy: what operators may set, and what is used of it.

Two doors with opposite manners: `clean` is for forms and commands and refuses a bad
value with the range in words; `resolve` is for the engine and never refuses, because
a value that got in by SQL must not stop a loop. It clamps, and says so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, models, transaction

from audit import clock, ledger
from audit.text import gate
from workqueue.bounds import Adjustment, Declaration, Key, accept, clamp, quote
from workqueue.exceptions import InvalidValues, VersionConflict
from workqueue.models import Setting

SAVES_AT_ONCE = 5  # attempts to get the next version number
HIGHEST_VERSION = 2**31 - 1  # of the column
CLAIM_TIMEOUT_S = 600  # seconds; the default


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPolicy:
    """Worker Node Configuration as the engine uses it."""

    concurrency: int
    poll_interval: timedelta
    claim_timeout: timedelta
    reclaim_interval: timedelta
    start_workers: bool
    enqueue_mode: str  # every | due


def _lowest_claim_timeout() -> int:
    """Three beats, at most the default: a claim is renewed with every beat."""
    return min(
        CLAIM_TIMEOUT_S, math.ceil((settings.KEEP_ALIVE * 6 / 5).total_seconds())
    )


WORKER_NODE_CONFIGURATION = Declaration(
    name="Worker Node Configuration",
    sentence="How all workers behave. A change reaches every process within 5 s; nothing needs a restart.",
    keys=(
        Key(
            name="WORKER_CONCURRENCY",
            default=10,
            lowest=1,
            high=500,
            unit="items",
            sentence="Work items that one worker runs in parallel.",
        ),
        Key(
            name="WORKER_POLL_INTERVAL_MS",
            default=10_000,
            lowest=100,
            high=600_000,
            unit="ms",
            sentence="How long an idle worker waits before it looks again. New work wakes it at once; this is the fallback.",
        ),
        Key(
            name="WORKER_CLAIM_TIMEOUT_SECONDS",
            default=CLAIM_TIMEOUT_S,
            lowest=_lowest_claim_timeout,
            high=86_400,
            unit="s",
            sentence="A claim that was not renewed for this long counts as abandoned. Claims are renewed with every heartbeat while an item runs, so a slow item is not run twice; three heartbeats are the least.",
        ),
        Key(
            name="WORKER_RECLAIM_INTERVAL_MS",
            default=60_000,
            lowest=1_000,
            high=3_600_000,
            unit="ms",
            sentence="How often each worker looks for abandoned items.",
        ),
        Key(
            name="START_WORKERS_ON_MASTER",
            default=True,
            sentence="Whether workers run at all. Off stops dedicated workers too, and no background task runs.",
        ),
        Key(
            name="ENQUEUE_MODE",
            default="every",
            choices=("every", "due"),
            sentence="every: an item for each eligible tenant at every tick. due: only for tenants that have work.",
        ),
    ),
)


# --- for forms and commands


def clean(
    values: Mapping[str, object],
    *,
    declaration: Declaration = WORKER_NODE_CONFIGURATION,
) -> dict[str, Any]:
    """The values to store: typed, and only those that differ from the defaults.

    Takes texts as they were typed, or JSON values. An empty text returns a key to its
    default, as does leaving it out. Raises InvalidValues with a sentence per key.
    """
    stored: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in values.items():
        key = declaration.key(name)
        if key is None:
            known = ", ".join(one.name for one in declaration.keys)
            problems[quote(name)] = f"There is no such key. There are {known}."
            continue
        if isinstance(value, str) and not value.strip():
            continue
        cleaned, problem = accept(key, value)
        if problem:
            problems[name] = f"{problem} {key.range}"
        elif cleaned != key.default:
            stored[name] = cleaned
    if problems:
        raise InvalidValues(problems)
    return stored


def save(
    values: Mapping[str, object],
    *,
    who: str,
    origin: str,
    why: str,
    expected_version: int | None = None,
    declaration: Declaration = WORKER_NODE_CONFIGURATION,
) -> Setting:
    """Write a new version that holds exactly these values.

    `expected_version`: the version that the operator saw (0: none yet); VersionConflict
    where it is no longer the newest. Saving what is in force anyway writes nothing.
    """
    stored = clean(values, declaration=declaration)
    write = partial(_write, declaration, stored, who=who, origin=origin, why=why)
    return write(verb="changed", expected_version=expected_version)


def restore(
    version: int,
    *,
    who: str,
    origin: str,
    why: str,
    expected_version: int | None = None,
    declaration: Declaration = WORKER_NODE_CONFIGURATION,
) -> Setting:
    """Write a new version with the values of an old one.

    Raises Setting.DoesNotExist, and InvalidValues where the old one would be refused.
    """
    old = Setting.objects.get(name=declaration.name, version=version)
    values = old.values if isinstance(old.values, dict) else {"values": old.values}
    stored = clean(values, declaration=declaration)
    write = partial(_write, declaration, stored, who=who, origin=origin, why=why)
    return write(
        verb="restored", expected_version=expected_version, restored_from=version
    )


def history(
    declaration: Declaration = WORKER_NODE_CONFIGURATION,
) -> models.QuerySet[Setting]:
    """All versions, newest first."""
    return Setting.objects.filter(name=declaration.name).order_by("-version")


def _write(
    declaration: Declaration,
    stored: dict[str, Any],
    *,
    who: str,
    origin: str,
    why: str,
    verb: str,
    expected_version: int | None,
    restored_from: int | None = None,
) -> Setting:
    name, why = declaration.name, gate(why)
    for _ in range(SAVES_AT_ONCE):
        # Version 0, which is no row: nobody has saved anything, all is at its default.
        newest = Setting.objects.newest(name) or Setting(name=name, version=0)
        version, old = newest.version, newest.values
        if expected_version is not None and expected_version != version:
            raise VersionConflict(
                f"Version {version} was saved by {newest.who or 'nobody'} while you "
                f"were looking at version {expected_version}. Nothing was overwritten: look at "
                "what is stored now, and save again."
            )
        if version >= HIGHEST_VERSION:
            raise VersionConflict(
                f"Version {version} is the highest that there can be; no save of ours made it. "
                "Delete that row of workqueue_setting, then save again."
            )
        if restored_from is None and _same(old, stored, declaration=declaration):
            return newest
        row = Setting(
            name=name,
            version=version + 1,
            values=stored,
            at=clock.now(),
            who=who,
            origin=origin,
            why=why,
            restored_from=restored_from,
        )
        try:
            with transaction.atomic():
                row.save(force_insert=True)
                ledger.change(
                    who=who,
                    origin=origin,
                    subject=f"setting:{name}",
                    verb=verb,
                    old=old,
                    new=stored,
                    why=why,
                )
        except IntegrityError:
            continue  # somebody took this number between our look and our insert
        return row
    raise VersionConflict


def _same(old: object, new: object, *, declaration: Declaration) -> bool:
    """Whether both ask for the same values, and neither for one that is clamped."""
    return clamp(old, declaration=declaration) == clamp(new, declaration=declaration)


# --- for the engine


def resolve(stored: object) -> tuple[WorkerPolicy, tuple[Adjustment, ...]]:
    """What to use of what is stored, and where that differs from it. Never raises."""
    used, adjusted = clamp(stored, declaration=WORKER_NODE_CONFIGURATION)
    policy = WorkerPolicy(
        concurrency=used["WORKER_CONCURRENCY"],
        poll_interval=timedelta(milliseconds=used["WORKER_POLL_INTERVAL_MS"]),
        claim_timeout=timedelta(seconds=used["WORKER_CLAIM_TIMEOUT_SECONDS"]),
        reclaim_interval=timedelta(milliseconds=used["WORKER_RECLAIM_INTERVAL_MS"]),
        start_workers=used["START_WORKERS_ON_MASTER"],
        enqueue_mode=used["ENQUEUE_MODE"],
    )
    return policy, adjusted


def as_values(policy: WorkerPolicy) -> dict[str, int | bool | str]:
    """The policy by the names and units of its keys."""
    second, millisecond = timedelta(seconds=1), timedelta(milliseconds=1)
    return {
        "WORKER_CONCURRENCY": policy.concurrency,
        "WORKER_POLL_INTERVAL_MS": policy.poll_interval // millisecond,
        "WORKER_CLAIM_TIMEOUT_SECONDS": policy.claim_timeout // second,
        "WORKER_RECLAIM_INTERVAL_MS": policy.reclaim_interval // millisecond,
        "START_WORKERS_ON_MASTER": policy.start_workers,
        "ENQUEUE_MODE": policy.enqueue_mode,
    }
