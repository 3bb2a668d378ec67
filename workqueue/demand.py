"""How many items of which handlers a worker asks for.

Free slots are shared among the handlers that have work, fewest running first, so
that ten thousand slow items of one handler do not keep another waiting. Handlers whose
runs are short may be claimed ahead, or the slots would wait for the database.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from workqueue import registry
from workqueue.claim import Demand
from workqueue.slots import Slots

PREFETCH = 400  # items claimed ahead, of fast handlers together
REFILL = PREFETCH // 2  # a claim for fewer costs as much as one for all
FAST = 0.05  # seconds; a handler whose median is below may be claimed ahead
AHEAD = 1.0  # seconds of work; nothing is claimed further ahead


def demand_of(
    keys: Sequence[str],
    *,
    slots: Slots,
    with_work: set[str],
    paused_tenants: Collection[int],
) -> Demand:
    """What to ask for now. `with_work`: handlers that had more than was asked for last time."""
    in_hand = slots.by_handler()
    medians = {
        key: seconds
        for key in keys
        if (seconds := _fast_median(key, slots)) is not None
    }
    slow = sorted(
        (key for key in keys if key not in medians), key=lambda key: in_hand[key]
    )
    taken = sum(
        count for key, count in in_hand.items() if _fast_median(key, slots) is None
    )
    free = max(0, slots.offered - taken)
    if not free:
        return Demand(slow={}, slow_total=0, fast={}, paused_tenants=paused_tenants)
    share = -(-free // max(1, len(with_work.intersection(slow))))
    return Demand(
        slow=dict.fromkeys(slow, share),
        slow_total=free,
        fast=_ahead(medians, free=free, in_hand=in_hand, with_work=with_work),
        paused_tenants=paused_tenants,
    )


def _ahead(
    medians: dict[str, float], *, free: int, in_hand: Counter[str], with_work: set[str]
) -> dict[str, int]:
    room = PREFETCH - sum(in_hand[key] for key in medians)
    if room < REFILL:
        return {}
    share = room // max(1, len(with_work.intersection(medians)))
    wanted = {
        key: max(free, int(free * AHEAD / max(seconds, 0.001))) - in_hand[key]
        for key, seconds in medians.items()
    }
    return {
        key: count for key, most in wanted.items() if (count := min(share, most)) > 0
    }


def _fast_median(key: str, slots: Slots) -> float | None:
    """Seconds; None: not fast, not known yet, or a row whose items start at most once."""
    seconds = slots.median(key)
    known = registry.rows().get(key)
    if (
        seconds is None
        or seconds >= FAST
        or known is None
        or known.abandon != "requeue"
    ):
        return None
    return seconds
