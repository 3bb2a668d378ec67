"""Status cards: to the letter what the worker wrote, and how old that is."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from jobworker import cards
from tests.jobworker.screening import worker
from workqueue.models import Node

pytestmark = pytest.mark.django_db
WHY = "DB pool of 10 serves 3 concurrent job(s); raise DB_POOL_SIZE / DB_MAX_OVERFLOW to use 12"


def test_a_card_reads_as_the_reference_has_it():
    worker(in_flight=2, reduced=[{"what": "total", "from": 12, "to": 3, "why": WHY}])
    (card,) = cards.alive(clock.now())
    lines = [line for line, _ in card.lines]
    assert lines[:4] == [
        "heavy 2   mixed 1   poll-only 3   total 3",
        "reduced: total 12→3",
        f"why: {WHY}",
        "2 job(s) in flight when reported · 25 threads · pool of 10",
    ]
    assert lines[4].startswith("reported by app-1 at ")
    assert [reduction for _, reduction in card.lines] == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert card.reduced
    assert not card.old


def test_a_card_is_old_from_thirty_seconds_on():
    now = clock.now()
    worker(heartbeat_at=now - timedelta(seconds=29))
    worker(host="app-2", heartbeat_at=now - timedelta(seconds=31))
    assert [card.old for card in cards.alive(now)] == [False, True]


def test_two_on_one_host_are_told_apart():
    worker()
    worker()
    names = [card.name for card in cards.alive(clock.now())]
    assert len(set(names)) == 2
    assert all(name.startswith("app-1, ") for name in names)


def test_the_least_that_anybody_uses_is_told_beside_the_cap():
    worker(reduced=[{"what": "total", "from": 12, "to": 3, "why": ""}])
    worker(host="app-2", reduced=[{"what": "total", "from": 12, "to": 1, "why": ""}])
    assert cards.least(cards.alive(clock.now())) == {"total": (12, 1)}


def test_the_last_one_that_stopped_is_known():
    assert cards.last_gone() is None
    gone = worker()
    Node.objects.update(status=Node.Status.STOPPED)
    assert cards.alive(clock.now()) == []
    assert cards.last_gone() == gone


@pytest.mark.parametrize(
    "spoilt",
    [None, [], "x", {"used": 3}, {"reduced": [1, {"from": "x"}]}, {"stuck": "x"}],
)
def test_whatever_a_worker_reported_a_card_comes_out(spoilt: Any):
    node = worker()
    Node.objects.filter(pk=node.pk).update(report=spoilt if spoilt is not None else {})
    (card,) = cards.alive(clock.now())
    assert card.lines[-1][0].startswith("reported by app-1")
