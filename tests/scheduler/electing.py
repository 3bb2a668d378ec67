"""Somebody else's session, a lease that runs out, and what was written of it all."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg

from audit import clock
from audit.models import NodeEvent
from scheduler.models import MasterLease
from tests import databases


@contextmanager
def somebody(statement: str, *params: Any) -> Iterator[psycopg.Connection[Any]]:
    """Another session that has run a statement and not ended its transaction."""
    with psycopg.connect(databases.url()) as session:
        session.execute(statement, params)
        yield session
        session.rollback()


def expire() -> None:
    MasterLease.objects.update(expires_at=clock.earlier(timedelta(seconds=1)))


def events(type: str) -> list[NodeEvent]:
    return list(NodeEvent.objects.filter(type=type).order_by("id"))
