"""Group commit."""

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import OperationalError, connections

from audit.models import Run
from audit.transcript import Closed, Transcript
from tests.waiting import wait_until
from workqueue import finisher as finisher_module
from workqueue import run as run_module
from workqueue.attempt import Attempt, Finished
from workqueue.finisher import Finisher
from workqueue.models import Node, WorkItem

Make = Callable[..., Attempt]


@pytest.fixture
def finisher(me: Node) -> Iterator[Finisher]:
    one = Finisher(
        node_id=me.id, node="host, 1", idle=lambda: False, returned=lambda: None
    )
    one.start()
    yield one
    assert one.end(within=10)
    connections.close_all()


def ended(attempt: Attempt) -> Finished:
    return run_module.run(attempt, stopping=lambda: False)


def test_results_are_stored_within_the_window_though_the_batch_is_not_full(
    finisher: Finisher, attempt: Make
) -> None:
    for n in range(1, 4):
        finisher.put(ended(attempt(f"log:{n}")))
    wait_until(lambda: Run.objects.count() == 3, within=5, what="three runs")
    assert finisher.pending() == 0


def test_more_than_a_batch_is_stored_in_several_transactions_and_none_is_lost(
    finisher: Finisher, attempt: Make
) -> None:
    some = [ended(attempt(f"log:{n}")) for n in range(1, 31)]
    with patch.object(finisher_module, "BATCH", 7):
        for one in some:
            finisher.put(one)
        wait_until(lambda: Run.objects.count() == 30, within=10, what="thirty runs")


def test_a_batch_ends_where_its_transcripts_have_many_lines(
    finisher: Finisher, attempt: Make
) -> None:
    real, sizes = finisher_module.finish, []

    def counted(batch: list[Finished], **kwargs: Any) -> int:
        sizes.append(len(batch))
        return real(batch, **kwargs)

    some = [ended(attempt(f"log:200+log:{n}")) for n in range(1, 8)]
    with (
        patch.object(finisher_module, "LINES", 300),
        patch.object(finisher_module, "finish", counted),
    ):
        for one in some:
            finisher.put(one)
        wait_until(lambda: Run.objects.count() == 7, within=10, what="seven runs")
    assert sum(sizes) == 7
    assert max(sizes) <= 2


def test_no_claim_is_missing_while_its_result_moves_to_the_batch(
    finisher: Finisher, attempt: Make
) -> None:
    one = ended(attempt())
    claim_id, transcript = one.attempt.claimed.claim_id, one.attempt.transcript
    seen = []

    def close() -> Closed:
        seen.append(claim_id in finisher.claims())
        return transcript.close()

    moving = SimpleNamespace(
        claimed=one.attempt.claimed, transcript=SimpleNamespace(close=close)
    )
    with patch.object(finisher_module, "finish", lambda *_, **__: 0):
        finisher.put(one._replace(attempt=moving))  # type: ignore[arg-type]
        wait_until(lambda: seen and not finisher.pending(), within=5, what="its end")
    assert all(seen)


def test_a_batch_is_repeated_until_the_database_takes_it(
    finisher: Finisher, attempt: Make
) -> None:
    real, calls = finisher_module.finish, []

    def flaky(*args: object, **kwargs: object) -> int:
        calls.append(kwargs["finish_id"])
        if len(calls) < 3:
            raise OperationalError("the database system is starting up")
        return real(*args, **kwargs)  # type: ignore[arg-type]

    one = ended(attempt())
    with patch.object(finisher_module, "finish", flaky):
        finisher.put(one)
        assert finisher.claims() in ([one.attempt.claimed.claim_id], [])
        wait_until(lambda: Run.objects.count() == 1, within=10, what="the run")
    assert len(set(calls)) == 1  # one id, so that a lost reply is recognised


def test_ending_stores_what_there_is(me: Node, attempt: Make) -> None:
    one = Finisher(node_id=me.id, node="n", idle=lambda: False, returned=lambda: None)
    one.put(ended(attempt()))
    one.start()
    assert one.end(within=10)
    assert Run.objects.count() == 1


def test_a_thread_that_meets_an_unknown_fault_goes_on(
    finisher: Finisher, attempt: Make
) -> None:
    real, calls = finisher_module.finish, []

    def flaky(*args: object, **kwargs: object) -> int:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("unforeseen")
        return real(*args, **kwargs)  # type: ignore[arg-type]

    with patch.object(finisher_module, "finish", flaky):
        finisher.put(ended(attempt()))
        wait_until(lambda: Run.objects.count() == 1, within=10, what="the run")
    assert not WorkItem.objects.exists()


@pytest.mark.race
def test_results_that_come_in_while_a_batch_is_taken_neither_stop_the_thread_nor_get_lost(
    me: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[object] = []
    monkeypatch.setattr(
        finisher_module, "finish", lambda batch, **_: stored.extend(batch) or 0
    )
    one = Finisher(node_id=me.id, node="n", idle=lambda: False, returned=lambda: None)
    one.start()
    attempt = SimpleNamespace(
        claimed=SimpleNamespace(abandon="requeue", claim_id=None),
        transcript=Transcript(claim_id=uuid4()),
    )

    def put() -> None:
        for _ in range(20_000):
            one.put(Finished(attempt, None, "", "", None))  # type: ignore[arg-type]

    writers = [threading.Thread(target=put) for _ in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        one.claims()
    assert one.end(within=30)
    assert len(stored) == 80_000
