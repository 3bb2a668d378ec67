"""daily: what the master does once a day, and at the beginning of its term.

The ledger's partitions of the coming months are made. Ticks are kept 7 days, but the
newest of each row, which says when it last ran; nodes that have stopped, 30 days. All
else belongs to the archival policies.
"""

import logging
from datetime import timedelta

from django.db.models import Max

from audit import clock, ledger
from scheduler.election import Election
from scheduler.exceptions import NotMaster, connection_lost
from scheduler.models import Tick
from workqueue.models import Node

logger = logging.getLogger(__name__)

TICKS = timedelta(days=7)
NODES = timedelta(days=30)
BATCH = 5000  # rows per transaction: far from the master's 10 s


def daily(election: Election) -> None:
    """All of it; what fails is logged and has another day."""
    for act in (_make_partitions, prune):
        try:
            act(election)
        except NotMaster:
            raise
        except Exception as problem:
            if connection_lost(problem):
                raise
            logger.exception("daily act failed act=%s", act.__name__)
        election.passed()


def prune(election: Election) -> int:
    """Delete what is too old, a batch per transaction of the master. Returns the rows."""
    newest = set(
        Tick.objects.order_by()
        .values("handler")
        .annotate(id=Max("id"))
        .values_list("id", flat=True)
    )
    total = 0
    while count := _ticks(election, keep=newest):
        total += count
        election.passed()
    with election.acting():
        gone, _ = Node.objects.filter(
            status=Node.Status.STOPPED, heartbeat_at__lt=clock.earlier(NODES)
        ).delete()
    if total or gone:
        logger.info("pruned ticks=%s nodes=%s", total, gone)
    return total + gone


def _make_partitions(_: Election) -> None:
    """On a connection of its own, which the ledger brings: several may do it at once."""
    if made := ledger.make_partitions(clock.now()):
        logger.info("partitions made %s", ", ".join(made))


def _ticks(election: Election, *, keep: set[int]) -> int:
    with election.acting():
        old = (
            Tick.objects.filter(at__lt=clock.earlier(TICKS))
            .exclude(id__in=keep)
            .order_by("at")
        )
        ids = list(old.values_list("id", flat=True)[:BATCH])
        count, _ = Tick.objects.filter(id__in=ids).delete()
    return count
