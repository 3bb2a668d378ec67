"""look: what a job worker needs to know at each pass, read in one statement."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from jobworker import sql
from jobworker.caps import Caps, resolve
from jobworker.models import Job
from workqueue import live
from workqueue.bounds import Adjustment, read_json
from workqueue.live import Live


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look saw."""

    live: Live  # pauses, and settings of the queue
    caps: Caps
    version: int  # of the caps; 0: all at their defaults
    adjusted: tuple[Adjustment, ...]
    waiting: bool  # some job is pending
    cancelled: frozenset[UUID]  # claims of this process that are to end


def look(node_id: UUID) -> Look:
    """Look. Raises DatabaseError where the database is away; no stored value stops it."""
    params = {"node_id": Job._meta.pk.get_db_prep_value(node_id, connection)}
    with connection.cursor() as cursor:
        cursor.execute(sql.LOOK[connection.vendor], params)
        row: tuple[Any, ...] = cursor.fetchone()
    *columns, stored, waiting, cancelled = row
    version, values = _setting(stored)
    caps, adjusted = resolve(values)
    return Look(
        live=live.adopt(columns),
        caps=caps,
        version=version,
        adjusted=adjusted,
        waiting=bool(waiting),
        cancelled=frozenset(UUID(claim) for claim in json.loads(cancelled or "[]")),
    )


def _setting(text: str | None) -> tuple[int, object]:
    if not text:
        return 0, {}
    row = json.loads(text)
    return int(row["version"]), read_json(row["values"])
