"""report: what a job worker resolved its limits to, and why; and the status card that says so.

Written by the worker itself with each beat, so the card answers at once whether it is
alive, what it runs, and whether anything was reduced. The card's wording is the
reference's to the letter: operators search for it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from typing import Any

from audit import words
from jobworker import installed, programs, registry
from jobworker.attempt import Attempt
from jobworker.caps import Limits, as_rows
from jobworker.look import Look
from jobworker.weight import Weight
from workqueue import connections
from workqueue.models import Node

WORDS = (("heavy", "heavy"), ("medium", "mixed"), ("light", "poll-only"))


def report_of(
    *,
    limits: Limits,
    seen: Look,
    running: Collection[Attempt],
    stuck: int,
    weight: Weight,
    draining: bool,
) -> dict[str, Any]:
    """The report of this moment; plain JSON."""
    gone = {one.what: one.used for one in limits.reduced}
    asked = limits.caps.as_values()
    return {
        "caps": asked,
        "used": {**asked, **gone},
        "reduced": as_rows(limits.reduced),
        "in_flight": len(running),
        "by_tier": {
            tier: sum(each.job.tier == tier for each in running)
            for tier in limits.caps.tiers
        },
        "asleep": max(0, len(running) - weight.taken()),
        "waking": [str(claim) for claim in weight.waking.copy()],
        "usable": limits.usable,
        "threads": limits.threads,
        "stuck": stuck,
        "pool": connections.size(),
        "types": list(registry.types()),
        "lacks": installed.lacks(registry.rows()),
        "programs": [
            {
                "claim": str(one.claim_id),
                "program": one.program,
                "pid": one.pid,
                "cpu_s": one.cpu_seconds,
            }
            for one in programs.running()
        ],
        "settings_version": seen.version,
        "policy": asked,
        "adjusted": [
            {"key": one.key, "asked": one.asked, "used": one.used, "why": one.why}
            for one in seen.adjusted
        ],
        "loop": "draining" if draining else "running",
        "connections": connections.report(),
    }


def card(node: Node, *, name: str = "") -> str:
    """The status card as text. `name`: what to call the process; its host where not given."""
    said: Mapping[str, Any] = node.report if isinstance(node.report, dict) else {}
    found = said.get("used")
    used = found if isinstance(found, Mapping) else {}
    caps = "   ".join(f"{word} {_number(used, tier)}" for tier, word in WORDS)
    at = node.heartbeat_at.astimezone(UTC).isoformat(timespec="seconds")
    pool = said.get("pool")
    pool_words = f"pool of {pool}" if isinstance(pool, int) else "no pool"
    return "\n".join(
        [
            f"{caps}   total {_number(used, 'total')}",
            *_reductions(said),
            f"{_number(said, 'in_flight')} job(s) in flight when reported · "
            f"{_number(said, 'threads')} threads · {pool_words}",
            *_waking(said),
            f"reported by {name or node.host} at {at.replace('+00:00', 'Z')}",
        ]
    )


def awake_words(said: Mapping[str, Any]) -> str:
    """What a job that has slept waits for: "until another job ends or sleeps: the pool serves 3"."""
    usable, caps = _number(said, "usable"), said.get("caps")
    total = _number(caps, "total") if isinstance(caps, Mapping) else words.UNKNOWN
    why = (
        f"the cap total is {total}" if usable == total else f"the pool serves {usable}"
    )
    return f"until another job ends or sleeps: {why}"


def start_words(limits: Limits) -> str:
    """The log line of the start, and of every change of the caps."""
    caps = limits.caps
    tiers = " ".join(f"{tier}={cap}" for tier, cap in caps.tiers.items())
    total = min(limits.total, limits.usable)
    return f"job runner: caps {tiers} total={total} (threads={limits.threads})"


def _reductions(said: Mapping[str, Any]) -> Sequence[str]:
    rows = said.get("reduced")
    lines = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping):
            lines.append(
                f"reduced: {row.get('what')} {row.get('from')}→{row.get('to')}"
            )
            lines.append(f"why: {row.get('why')}")
    return lines


def _waking(said: Mapping[str, Any]) -> Sequence[str]:
    waking = said.get("waking")
    if not isinstance(waking, list) or not waking:
        return []
    return [f"{len(waking)} job(s) have slept and wait {awake_words(said)}"]


def _number(said: Mapping[str, Any], name: str) -> int | str:
    value = said.get(name)
    return value if isinstance(value, int) else words.UNKNOWN
