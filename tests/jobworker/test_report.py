"""The status card reads like the reference."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from audit import words
from jobworker import registry
from jobworker.attempt import Attempt
from jobworker.caps import limits, resolve
from jobworker.look import Look
from jobworker.report import card, report_of, start_words
from jobworker.weight import Weight
from workqueue import connections
from workqueue.live import Live
from workqueue.models import Node

pytestmark = pytest.mark.once


def node(
    monkeypatch: pytest.MonkeyPatch,
    *,
    pool: int | None,
    waking: int = 0,
    **stored: int,
) -> Node:
    monkeypatch.setattr(connections, "size", lambda: pool)
    caps, adjusted = resolve(stored)
    seen = Look(
        live=Live(),
        caps=caps,
        version=7,
        adjusted=adjusted,
        waiting=False,
        cancelled=frozenset(),
    )
    attempts: list[Attempt] = []
    weight = Weight()
    weight.waking = [UUID(int=number) for number in range(waking)]
    report = report_of(
        limits=limits(caps, threads=25),
        seen=seen,
        running=attempts,
        stuck=0,
        weight=weight,
        draining=False,
    )
    at = datetime(2026, 8, 3, 18, 22, 4, tzinfo=UTC)
    return Node(host="app-1", pid=7, heartbeat_at=at, report=report)


def test_the_card_of_a_worker_that_is_not_reduced(
    monkeypatch: pytest.MonkeyPatch, job_types: None
) -> None:
    assert card(node(monkeypatch, pool=10)) == (
        "heavy 2   mixed 1   poll-only 3   total 3\n"
        "0 job(s) in flight when reported · 25 threads · pool of 10\n"
        "reported by app-1 at 2026-08-03T18:22:04Z"
    )


def test_the_card_of_a_reduced_worker_says_why(
    monkeypatch: pytest.MonkeyPatch, job_types: None
) -> None:
    assert card(node(monkeypatch, pool=10, total=12)).splitlines()[:3] == [
        "heavy 2   mixed 1   poll-only 3   total 3",
        "reduced: total 12→3",
        "why: DB pool of 10 serves 3 concurrent job(s); "
        "raise DB_POOL_SIZE / DB_MAX_OVERFLOW to use 12",
    ]


@pytest.mark.parametrize(
    ("total", "reason"), [(12, "the pool serves 3"), (2, "the cap total is 2")]
)
def test_the_card_says_how_many_have_slept_and_wait_and_for_what(
    monkeypatch: pytest.MonkeyPatch, job_types: None, total: int, reason: str
) -> None:
    text = card(node(monkeypatch, pool=10, waking=4, total=total))
    assert text.splitlines()[-2] == (
        f"4 job(s) have slept and wait until another job ends or sleeps: {reason}"
    )


def test_the_report_says_what_it_knows_and_cannot_run(
    monkeypatch: pytest.MonkeyPatch, job_types: None
) -> None:
    report = node(monkeypatch, pool=None).report
    assert report["types"] == list(registry.types())
    assert report["lacks"] == {"no-such-program": ["act_lacking"]}
    assert report["settings_version"] == 7


@pytest.mark.parametrize(
    "report",
    [[], "x", 3, {"used": [], "reduced": 5}, {"waking": 3}, {"waking": [1]}, {}],
)
def test_whatever_stands_in_a_report_there_is_a_card(report: object) -> None:
    at = datetime(2026, 8, 3, tzinfo=UTC)
    assert f"heavy {words.UNKNOWN}" in card(
        Node(host="a", pid=1, heartbeat_at=at, report=report)
    )


def test_the_line_of_the_start_is_the_references(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "size", lambda: 10)
    assert start_words(limits(resolve({})[0], threads=25)) == (
        "job runner: caps heavy=2 medium=1 light=3 total=3 (threads=25)"
    )
