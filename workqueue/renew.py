"""Keep the claims of this process, with every beat; notice those that are no longer its own.

A claim whose reply was lost is nobody's in memory: it goes back. A claim that
somebody took (an operator's cancel, a judge) closes its attempt's door.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import connection

from audit import clock, wire
from workqueue import finish, node, sql
from workqueue.finisher import Finisher
from workqueue.models import WorkItem
from workqueue.slots import Slots

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What renewing found in the database."""

    held: set[UUID]  # claims of this node
    strays: dict[UUID, int]  # claimed over a beat ago and not in memory: claim -> item


class Renewing:
    """The beat's task."""

    def __init__(self, *, node_id: UUID, slots: Slots, finisher: Finisher) -> None:
        """Whose claims, and where this process keeps them."""
        self._node_id, self._slots, self._finisher = node_id, slots, finisher
        self._missed: set[UUID] = set()  # strays of the beat before

    def __call__(self) -> None:
        """Renew, return strays, close what was lost."""
        held = [*self._slots.claims(), *self._finisher.claims()]
        found = renew(node_id=self._node_id, in_memory=set(held), beat=node.interval())
        # Twice in a row: between two threads an attempt is in nobody's list for a moment.
        again = {
            claim: item for claim, item in found.strays.items() if claim in self._missed
        }
        self._missed = set(found.strays)
        if again:
            logger.warning("claims without a reply returned items=%s", len(again))
            finish.hand_back(list(again.values()), list(again))
        running = {a.claimed.claim_id: a for a in self._slots.running.copy()}
        missing = [claim for claim in running if claim not in found.held]
        for claim in lost(missing) if missing else ():
            claimed = running[claim].claimed
            logger.warning(
                "claim lost handler=%s tenant=%s claim=%s",
                claimed.handler,
                claimed.tenant,
                claim,
            )
            running[claim].closed = True


def renew(*, node_id: UUID, in_memory: set[UUID], beat: timedelta) -> Renewal:
    """Renew every claim of this node."""
    if connection.vendor == "postgresql":
        params = {
            "node_id": node_id,
            "now": clock.fixed(),
            "beat_s": beat.total_seconds(),
        }
        rows = wire.fetch(sql.RENEW, params)
    else:
        mine = WorkItem.objects.executing().filter(node_id=node_id)
        before = clock.now() - beat
        rows = [
            (i, c, at is not None and at < before)
            for i, c, at in mine.values_list("id", "claim_id", "claimed_at")
        ]
        if rows:
            mine.update(renewed_at=clock.DatabaseNow())
    strays = {
        claim: item for item, claim, old in rows if old and claim not in in_memory
    }
    return Renewal(held={claim for _, claim, _ in rows}, strays=strays)


def lost(claims: Sequence[UUID]) -> set[UUID]:
    """Which of these claims are no longer any live item's."""
    still = WorkItem.objects.filter(claim_id__in=claims).values_list(
        "claim_id", flat=True
    )
    return set(claims) - set(still)
