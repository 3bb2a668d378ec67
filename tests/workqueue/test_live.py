"""Live settings: read in one statement, at most 5 s old, and never a reason to stop."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from audit import clock
from tests import factories
from workqueue import live, pauses, policy
from workqueue.models import Pause, Setting

BY = {"who": "operator", "origin": "admin", "why": "test"}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    live.forget()
    yield
    live.forget()


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of deadlines in memory, in the test's hand."""
    at = [1000.0]
    monkeypatch.setattr(clock, "steady", lambda: at[0])
    return at


def test_without_a_saved_version_the_defaults_are_in_force() -> None:
    found = live.current()
    assert (found.version, found.policy.concurrency, found.pauses) == (0, 10, ())


def test_settings_and_pauses_take_one_statement_in_five_seconds(
    steady: list[float],
) -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    pauses.pause(scope="everything", reason="upgrade", who="operator", origin="admin")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert live.current().policy.concurrency == 12
        steady[0] += 4.9
        assert live.current().version == 1
    assert len(queries) == 1
    policy.save({"WORKER_CONCURRENCY": 13}, **BY)
    steady[0] += 0.2
    assert live.current().policy.concurrency == 13


def test_only_a_process_that_stays_says_which_version_is_in_force(
    steady: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="workqueue.live")
    live.current()  # all that a command asks
    assert caplog.messages == []
    policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    steady[0] += 6
    live.current()
    assert caplog.messages == ["settings version=1 in force"]


def test_while_the_database_cannot_be_read_the_last_known_stays(
    steady: list[float],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    live.current()

    def refuse(*_: Any) -> Any:
        raise OperationalError("the server is away")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", refuse)
        for _ in range(5):
            steady[0] += 6
            assert live.current().policy.concurrency == 12
    assert [r.message for r in caplog.records if "cannot be read" in r.message] == [
        "settings cannot be read, version=1 stays: the server is away"
    ]
    policy.save({"WORKER_CONCURRENCY": 13}, **BY)
    steady[0] += 6
    assert live.current().policy.concurrency == 13


def test_before_anything_was_read_an_outage_means_the_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> Any:
        raise OperationalError("the server is away")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", refuse)
        assert live.current().policy.concurrency == 10


@pytest.mark.parametrize(
    "stored",
    ["null", "5", '"x"', "[]", '{"WORKER_CONCURRENCY": null}', '{"WORKER_CONCURRENCY": 1e9}',
     '{"WORKER_CONCURRENCY": {"a": [1]}}', '{"WORKER_CONCURRENCY": %s}' % ("9" * 6000),
     '{"WORKER_CONCURRENCY": "\u0665"}', "[" * 900 + "]" * 900, '{"ENQUEUE_MODE": 1}'],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_whatever_json_got_in_by_sql_is_clamped_and_reported(stored: str) -> None:
    saved = policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    with connection.cursor() as cursor:
        cursor.execute('UPDATE workqueue_setting SET "values" = %s', [stored])
    found = live.current()
    assert found.version == saved.version
    assert 1 <= found.policy.concurrency <= 500
    assert found.adjusted
    # The history that operators see can still be read.
    assert Setting.objects.get().version == 1


def test_the_columns_can_be_read_in_a_larger_statement_and_adopted() -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 7, {live.READ[connection.vendor]} WHERE 1 = %s", [1])
        row = cursor.fetchone()
    assert row[0] == 7
    assert live.adopt(row[1:]).policy.concurrency == 12
    with CaptureQueriesContext(connection) as queries:
        assert live.current().version == 1
    assert len(queries) == 0


def test_pauses_name_what_they_stop_and_end_by_themselves() -> None:
    one, other = factories.tenant(), factories.tenant()
    now = clock.now()
    pauses.pause(
        scope="handler",
        handler="a.b",
        reason="r",
        who="w",
        origin="admin",
        until=now + timedelta(hours=1),
    )
    pauses.pause(scope="tenant", tenant=one, reason="r", who="w", origin="admin")
    found = live.refresh()
    assert found.paused("a.b", other.pk, now)
    assert not found.paused("a.c", other.pk, now)
    assert found.paused("a.c", one.pk, now)
    assert found.paused_handler("a.b")
    assert not found.paused_handler("a.c")
    assert found.paused_tenants() == {one.pk}
    later = now + timedelta(hours=2)
    assert not found.paused("a.b", other.pk, later)
    assert not found.paused_handler("a.b", later)
    (row,) = [row for row in found.pauses if row.scope == "tenant"]
    assert (row.tenant, row.tenant_id, row.until) == (one.slug, one.pk, None)
    assert abs(row.since - now) < timedelta(seconds=5)
    (row,) = [row for row in found.pauses if row.scope == "handler"]
    assert row.until == now + timedelta(hours=1)


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("until", "holds"),
    [
        ("infinity", True),
        ("12026-01-01", True),
        ("-infinity", False),
        ("0044-03-15 BC", False),
    ],
)
def test_a_pause_until_a_time_that_python_cannot_hold_stops_no_process(
    until: str, holds: bool
) -> None:
    pauses.pause(scope="everything", reason="r", who="w", origin="admin")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workqueue_pause SET until = %s", [until])
    assert (live.refresh().paused_handler("a.b") is not None) is holds


def test_a_pause_of_everything_stops_every_handler() -> None:
    Pause.objects.create(scope="everything", reason="r", who="w", since=clock.now())
    found = live.refresh()
    assert found.paused("a.b", 1, clock.now())
    assert found.paused_handler("a.b")
    assert found.paused_tenants() == frozenset()


def test_an_ended_pause_is_gone() -> None:
    row = pauses.pause(scope="everything", reason="r", who="w", origin="admin")
    pauses.resume(row, who="w", origin="admin", why="done")
    assert live.refresh().pauses == ()


def test_what_is_used_can_be_reported_as_json() -> None:
    policy.save({"WORKER_CONCURRENCY": 12, "ENQUEUE_MODE": "due"}, **BY)
    used = json.loads(json.dumps(live.refresh().used()))
    assert used["WORKER_CONCURRENCY"] == 12
    assert used["WORKER_CLAIM_TIMEOUT_SECONDS"] == 600
    assert used["ENQUEUE_MODE"] == "due"
