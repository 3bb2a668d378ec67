"""readout: what the processes use of a setting, and why, from their own reports.

A process says with every beat which version it applies, which value of each key it
uses and what it had to change. Reports are JSON of other releases too: whatever
stands in them, the page is shown.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from audit import words
from workqueue import node, registry
from workqueue.bounds import Declaration, Key, quote
from workqueue.models import Node, Setting, Tenant

UNITS = {"ms": timedelta(milliseconds=1), "s": timedelta(seconds=1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A worker that is alive, with what it said last."""

    name: str  # host; with the pid where one host has several
    version: int | None  # of the setting; None: not said
    heartbeat_at: datetime
    used: Mapping[str, Any]  # key -> value in use
    slots: int | None  # items it runs in parallel
    asked: int | None
    why: str  # why it runs fewer than asked; "": it does not
    adjusted: tuple[tuple[str, str], ...]  # (key, why) of values that were changed
    loop: str  # why it runs nothing at all; "": it runs

    @property
    def version_words(self) -> str:
        """The version it applies, as the table says it."""
        return (
            "not said"
            if self.version is None
            else str(self.version)
            if self.version
            else "defaults"
        )

    @property
    def slots_words(self) -> str:
        """How many items it runs in parallel."""
        return words.UNKNOWN if self.slots is None else words.plural(self.slots, "item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """A value in use, and by whom."""

    value: str
    where: str  # "in every process", "on app-1, app-2"
    reduced: bool = False
    why: str = ""

    @property
    def reduced_words(self) -> str:
        """'8 on queue-2'."""
        return words.shown(f"{self.value} {self.where}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A key on the form."""

    key: Key
    text: str  # what stands in the field
    on: bool  # for a box
    changed: bool  # differs from the default
    problem: str
    default: str  # "Default 10, from 1 to 500"
    effective: tuple[Effective, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a version has reached."""

    applying: int
    count: int
    late: tuple[
        tuple[Process, timedelta], ...
    ]  # who does not apply it, and when its next report is due


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A row of the history."""

    setting: Setting
    changes: tuple[tuple[str, str, str], ...]  # (key, old, new)
    odd: str  # what is stored, where that is no set of values; "": it is one
    in_force: bool


def processes(now: datetime, *, kind: str = Node.Kind.WORKER) -> list[Process]:
    """The workers alive, or the processes of another kind, by name. One query."""
    alive = list(Node.objects.alive().filter(kind=kind).order_by("host", "pid"))
    named = zip(alive, node.called(alive), strict=True)
    return [_process(each, name=name) for each, name in named]


def rows(
    declaration: Declaration,
    newest: Setting | None,
    processes: Sequence[Process],
    *,
    typed: Mapping[str, str] | None,
    problems: Mapping[str, str],
) -> list[Row]:
    """The form, key by key: what was typed where it was refused, else what is stored."""
    stored = newest.values if newest and isinstance(newest.values, dict) else {}
    found = []
    for key in declaration.keys:
        kept = stored.get(key.name, key.default)
        text = typed.get(key.name, "") if typed is not None else _plain(kept)
        found.append(
            Row(
                key=key,
                text=text,
                on=text.lower() in ("on", "true", "1"),
                changed=key.name in stored
                or (
                    typed is not None and text.strip() not in ("", _plain(key.default))
                ),
                problem=problems.get(key.name, ""),
                default=_default(key),
                effective=tuple(_effective(key, processes)),
            )
        )
    return found


def spread(
    processes: Sequence[Process], newest: Setting | None, *, now: datetime
) -> Spread:
    """Who applies the newest version, and when the others will say that they do."""
    version = newest.version if newest else 0
    late = [each for each in processes if each.version != version]
    left = [each.heartbeat_at + node.interval() - now for each in late]
    # Whole seconds, up: a beat is a little late, never early.
    due = [timedelta(seconds=max(0, math.ceil(one.total_seconds()))) for one in left]
    return Spread(
        applying=len(processes) - len(late),
        count=len(processes),
        late=tuple(zip(late, due, strict=True)),
    )


def history(versions: Sequence[Setting], *, declaration: Declaration) -> list[Version]:
    """Versions, newest first, each with what it changed of the one before it."""
    pairs = pairwise([*versions, None])
    return [
        Version(
            setting=each,
            changes=changes(
                old.values if old else {}, each.values, declaration=declaration
            ),
            odd="" if isinstance(each.values, dict) else quote(each.values),
            in_force=place == 0,
        )
        for place, (each, old) in enumerate(pairs)
        if each is not None
    ]


def changes(
    old: object, new: object, *, declaration: Declaration
) -> tuple[tuple[str, str, str], ...]:
    """(key, old, new) of every key that differs; a key that is not stored is at its default."""
    keys = {key.name: key for key in declaration.keys}
    default = {name: key.default for name, key in keys.items()}
    before, after = (
        {**default, **each} if isinstance(each, dict) else default
        for each in (old, new)
    )

    def told(values: Mapping[str, Any], name: str) -> str:
        return _stored(keys.get(name), values[name]) if name in values else ""

    return tuple(
        (name, told(before, name), told(after, name))
        for name in dict.fromkeys([*before, *after])
        # The texts too: to Python true is 1.
        if before.get(name) != after.get(name)
        or told(before, name) != told(after, name)
    )


def enqueues() -> str:
    """What ENQUEUE_MODE costs here. One query."""
    tenants = Tenant.objects.active().count()
    often = [
        row for row in registry.rows().values() if row.scope == "tenant" and row.cadence
    ]
    each = sum(
        60 / seconds for row in often if (seconds := _seconds(row.cadence or ""))
    )
    if not each:
        return ""
    total = round(each * tenants)
    return f"With your {words.plural(tenants, 'tenant')}, every enqueues about {words.plural(total, 'item')} a minute; due only what has work."


def _seconds(cadence: str) -> int:
    """The length of an interval such as 10s or 5m; 0 for a cadence of another kind."""
    match = re.fullmatch(r"([0-9]{1,6})([smh])", cadence, re.ASCII)
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] if match else 0


def _process(row: Node, *, name: str) -> Process:
    report: dict[str, Any] = row.report if isinstance(row.report, dict) else {}
    slots = _object(report.get("slots"))
    used, asked = _number(slots.get("used")), _number(slots.get("asked"))
    told = report.get("adjusted")
    adjusted = [_object(each) for each in told] if isinstance(told, list) else []
    loop = str(report.get("loop") or "running")
    return Process(
        name=name,
        version=_number(report.get("settings_version")),
        heartbeat_at=row.heartbeat_at,
        used=_object(report.get("policy")),
        slots=used,
        asked=asked,
        why=str(slots.get("why") or "")
        if used is not None and asked is not None and used < asked
        else "",
        adjusted=tuple(
            (str(each.get("key")), str(each.get("why") or "")) for each in adjusted
        ),
        loop="" if loop == "running" else loop,
    )


def _effective(key: Key, processes: Sequence[Process]) -> list[Effective]:
    """The values in use, those of most processes first."""
    groups: dict[tuple[str, str], list[Process]] = {}
    for each in processes:
        groups.setdefault(_used(key, each), []).append(each)
    found = sorted(groups.items(), key=lambda pair: (bool(pair[0][1]), -len(pair[1])))
    everywhere = len(found) == 1 and len(processes) > 1
    return [
        Effective(
            value=value,
            where=_where(group, everywhere=everywhere),
            reduced=bool(why),
            why=why,
        )
        for (value, why), group in found
    ]


def _where(group: Sequence[Process], *, everywhere: bool) -> str:
    """'in every process', 'on app-1, app-2'."""
    if not everywhere:
        return "on " + ", ".join(each.name for each in group)
    return "in every process"


def _used(key: Key, process: Process) -> tuple[str, str]:
    """What a process uses of a key, and why it is not what was asked."""
    if key.name == "WORKER_CONCURRENCY" and process.slots is not None:
        return f"{process.slots:,}", process.why
    if key.name not in process.used:
        return "not said yet", ""
    why = next((why for name, why in process.adjusted if name == key.name), "")
    return _shown(key, process.used[key.name]), why


def _shown(key: Key, value: Any) -> str:
    """A value in use, in words: 10 s, on, every."""
    if isinstance(value, bool):
        return "on" if value else "off"
    unit = UNITS.get(key.unit)
    if unit is not None and isinstance(value, int | float):
        return words.duration(value * unit)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _default(key: Key) -> str:
    if key.type == "integer":
        return f"Default {key.default:,}, from {key.low:,} to {key.high:,}"
    return f"Default {_plain(key.default)}"


def _plain(value: object) -> str:
    """A stored value as it is typed."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else words.shown(str(value))


def _stored(key: Key | None, value: object) -> str:
    """A stored value: as it is typed where it is of the key's kind, else as JSON has it."""
    typed = key is not None and type(value) is type(key.default)
    return _plain(value) if typed else quote(value)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
