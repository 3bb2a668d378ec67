"""What a worker resolved its limits to, and why: a part of its node's row.

Written with each beat and read by the settings page, the nodes page and the index.
"""

from typing import Any

from workqueue import connections, registry
from workqueue.live import Live
from workqueue.slots import Slots


def report_of(slots: Slots, *, live: Live, draining: bool) -> dict[str, Any]:
    """The report of this moment; plain JSON."""
    return {
        "slots": {
            "asked": live.policy.concurrency,
            "used": slots.offered,
            "why": _why(slots, asked=live.policy.concurrency),
        },
        "in_flight": len(slots.running),
        "prefetched": len(slots.waiting),
        "stuck": len(slots.stuck),
        "settings_version": live.version,
        "handlers": list(registry.rows()),
        "policy": live.used(),
        "adjusted": [
            {"key": one.key, "asked": one.asked, "used": one.used, "why": one.why}
            for one in live.adjusted
        ],
        "loop": _loop(live, draining=draining),
        "connections": connections.report(),
    }


def _why(slots: Slots, *, asked: int) -> str:
    """Why fewer slots than asked for; "" where that is not so."""
    reasons = []
    serves = connections.serves_items()
    if serves is not None and serves < asked:
        reasons.append(
            f"Its pool of {connections.size()} connections serves {serves}."
            " Raise DB_POOL_SIZE or DB_MAX_OVERFLOW there."
        )
    if slots.stuck and slots.offered < asked:
        reasons.append(
            f"{len(slots.stuck)} of its threads are stuck in runs over their time limit."
        )
    return " ".join(reasons)


def _loop(live: Live, *, draining: bool) -> str:
    if draining:
        return "draining"
    if not live.policy.start_workers:
        return "stopped: START_WORKERS_ON_MASTER is off"
    return "running"
