"""The tests' timetable in place of the product's, and claims made by hand."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from audit import clock
from audit.transcript import Transcript
from tests import factories
from tests.processes import Process
from tests.workqueue.running import KEEP_ALIVE, enqueue
from workqueue import registry
from workqueue.attempt import Attempt
from workqueue.claim import Claimed, Demand, Marks, claim
from workqueue.models import Node, Tenant


@pytest.fixture
def timetable(settings: Any) -> Iterator[None]:
    """tests.timetable, in this process."""
    settings.WORKQUEUE_HANDLERS = "tests.timetable.TIMETABLE"
    settings.WORKQUEUE_HANDLERS_PACKAGE = "tests.handlers"
    _forget()
    yield
    _forget()


_CACHED = (registry.rows, registry.load, registry.due)


def _forget() -> None:
    for cached in _CACHED:
        cached.cache_clear()


@pytest.fixture
def acme(transactional_db: None) -> Tenant:
    """A tenant."""
    return factories.tenant("acme")


@pytest.fixture
def me(transactional_db: None) -> Node:
    """This process, as the database knows it."""
    return factories.node()


@pytest.fixture
def take(me: Node, timetable: None) -> Callable[..., list[Claimed]]:
    """Claim up to `limit` items of one handler for this process."""

    def take(
        handler: str = "act", limit: int = 10, node_id: UUID | None = None
    ) -> list[Claimed]:
        demand = Demand(slow={handler: limit}, slow_total=limit, fast={})
        return claim(demand, node_id=node_id or me.id, node="host, 1", marks=Marks())

    return take


@pytest.fixture
def attempt(take: Callable[..., list[Claimed]], acme: Tenant) -> Callable[..., Attempt]:
    """Enqueue an item that does `does`, claim it, and give its attempt."""

    def make(does: str = "", handler: str = "act", **values: Any) -> Attempt:
        item = enqueue(acme, does, handler, **values)
        [claimed] = [c for c in take(handler) if c.id == item.id]
        return Attempt(
            claimed, Transcript(claim_id=claimed.claim_id), started_at=clock.now()
        )

    return make


@pytest.fixture
def ticking(settings: Any, transactional_db: None) -> Iterator[None]:
    """The timetable of the scheduler's tests."""
    settings.WORKQUEUE_HANDLERS = "tests.scheduler.timetable_for_tests.TIMETABLE"
    settings.WORKQUEUE_HANDLERS_PACKAGE = "tests.scheduler.runs"
    for cached in (registry.rows, registry.load, registry.due):
        cached.cache_clear()
    yield
    for cached in (registry.rows, registry.load, registry.due):
        cached.cache_clear()


@pytest.fixture
def worker(spawn: Callable[..., Process]) -> Callable[..., Process]:
    """Start a worker on the tests' timetable, and wait until it has registered."""

    def start(**env: str) -> Process:
        process = spawn(
            "runworker",
            env={
                "DJANGO_SETTINGS_MODULE": "tests.engine_settings",
                "FALCON_SERVER_KEEP_ALIVE_SECONDS": str(KEEP_ALIVE.seconds),
                **env,
            },
        )
        process.says("worker started")
        return process

    return start
