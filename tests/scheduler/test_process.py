"""A scheduler process: its node, its judgement of others, its end."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from audit import clock
from audit.models import NodeEvent
from scheduler.models import MasterLease
from scheduler.ticker import Ticker
from tests import factories
from workqueue import node
from workqueue.models import Node, WorkItem


def test_the_end_resigns_and_says_so(ticker: Ticker) -> None:
    ticker.poll()
    ticker.stop()
    ticker.drain()
    assert MasterLease.objects.get().holder is None
    assert Node.objects.get().status == "stopped"
    types = list(NodeEvent.objects.order_by("id").values_list("type", flat=True))
    assert types == ["started", "elected", "resigned", "stopped"]


def test_the_end_comes_without_the_database_too(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ticker.poll()

    def away(**_: Any) -> None:
        raise OperationalError("no database")

    with monkeypatch.context() as patched:
        patched.setattr(ticker.election, "resign", away)
        patched.setattr(node, "end", lambda *_, **__: away())
        ticker.drain()
    assert caplog.text.count("ending without the database") == 2


def test_silent_processes_are_judged_only_by_one_that_may(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = factories.node(heartbeat_at=clock.now() - timedelta(hours=1))
    factories.item(
        factories.platform(),
        "plain",
        status="executing",
        node_id=worker.id,
        claim_id=clock.uuid7(),
        tenant_slug="platform",
        claimed_at=clock.now(),
        renewed_at=clock.now(),
        trigger="slot",
        attempts=1,
    )
    for _ in range(2):
        ticker.judge()
    assert Node.objects.get(id=worker.id).status == "running"
    monkeypatch.setattr(ticker.beat, "may_judge", lambda: True)
    for _ in range(2):  # a standby judges with every second beat
        ticker.judge()
    assert Node.objects.get(id=worker.id).status == "stopped"
    assert WorkItem.objects.get().status == "pending"


def test_the_report_names_term_and_settings(ticker: Ticker) -> None:
    ticker.poll()
    report = ticker.report()
    assert report.pop("connections")["outside"] >= 1
    assert report == {
        "term": 1,
        "settings_version": 0,
        "handlers": [],
        "not_set": [],
        "loop": "running",
    }
