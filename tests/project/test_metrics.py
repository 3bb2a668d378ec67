"""/metrics: what Prometheus reads, from the database alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from audit import clock, tally
from project import figures, metrics
from scheduler.models import MasterLease, Schedule, Tick
from tests import factories
from tests.audit.conftest import recorded
from workqueue import live, pauses, registry

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_read_yet(monkeypatch):
    monkeypatch.setattr(metrics, "_known", None)


def scrape(client, **headers: str) -> dict[str, float]:
    """Sample -> value, as Prometheus reads it."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content
    return {
        _name(sample): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def _name(sample: Any) -> str:
    labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
    return f"{sample.name}{{{labels}}}" if labels else sample.name


def elect(node, *, since=None) -> None:
    now = clock.now()
    MasterLease.objects.update(
        holder=node.id,
        node=str(node),
        term=41,
        since=since or now,
        renewed_at=now,
        expires_at=now + timedelta(seconds=20),
    )


def test_the_queue_is_told_by_handler_with_the_age_of_its_oldest(client):
    acme = factories.tenant("acme")
    due = clock.now() - timedelta(minutes=3)
    factories.item(acme, "a.b", not_before=due)
    factories.item(acme, "a.b", dedup_key="2")
    factories.item(acme, "a.c", status="held")
    found = scrape(client)
    assert found["millrace_queue_items{handler=a.b,status=pending}"] == 2
    assert found["millrace_queue_items{handler=a.b,status=executing}"] == 0
    assert found["millrace_queue_items{handler=a.c,status=held}"] == 1
    assert 180 <= found["millrace_queue_oldest_seconds{handler=a.b}"] < 190
    assert found["millrace_queue_oldest_seconds{handler=a.c}"] == 0
    # What has no work is told too: a line that ends is not one at zero.
    assert (
        found["millrace_queue_items{handler=notifications.deliver,status=pending}"] == 0
    )


def test_what_is_not_due_yet_does_not_age(client):
    factories.item(
        factories.tenant(), "a.b", not_before=clock.now() + timedelta(minutes=3)
    )
    assert scrape(client)["millrace_queue_oldest_seconds{handler=a.b}"] == 0


@pytest.mark.parametrize(
    ("scope", "oldest"), [("tenant", 60), ("handler", 0), ("everything", 0)]
)
def test_what_a_pause_holds_back_does_not_age(client, scope: str, oldest: int):
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    handler, now = next(iter(registry.rows())), clock.now()
    factories.item(acme, handler, not_before=now - timedelta(minutes=3))
    factories.item(granite, handler, not_before=now - timedelta(minutes=1))
    pauses.pause(
        scope=scope,
        tenant=acme if scope == "tenant" else None,
        handler=handler if scope == "handler" else "",
        reason="moving",
        who="me",
        origin="command",
    )
    live.refresh()
    found = scrape(client)[f"millrace_queue_oldest_seconds{{handler={handler}}}"]
    assert oldest <= found < oldest + 10


def test_runs_are_counters_and_histograms_that_cumulate(client):
    tally.read(now=clock.now() - timedelta(minutes=5))
    end = clock.now() - timedelta(minutes=1)
    for ran in (0.04, 0.04, 20):
        recorded(
            handler="a.b",
            enqueued_at=end - timedelta(seconds=ran + 7),
            claimed_at=end - timedelta(seconds=ran),
            started_at=end - timedelta(seconds=ran),
            finished_at=end,
        )
    found = scrape(client)
    assert found["millrace_runs_total{handler=a.b,outcome=succeeded}"] == 3
    # The first failure is an increase, since there was a zero before it.
    assert found["millrace_runs_total{handler=a.b,outcome=failed}"] == 0
    assert (
        found["millrace_runs_total{handler=notifications.deliver,outcome=failed}"] == 0
    )
    ran = "millrace_run_duration_seconds"
    assert found[f"{ran}_bucket{{handler=a.b,le=0.05}}"] == 2
    assert found[f"{ran}_bucket{{handler=a.b,le=10.0}}"] == 2
    assert found[f"{ran}_bucket{{handler=a.b,le=30.0}}"] == 3
    assert found[f"{ran}_bucket{{handler=a.b,le=+Inf}}"] == 3
    assert found[f"{ran}_count{{handler=a.b}}"] == 3
    assert found[f"{ran}_sum{{handler=a.b}}"] == pytest.approx(20.08)
    assert found["millrace_run_wait_seconds_bucket{handler=a.b,le=5.0}"] == 0
    assert found["millrace_run_wait_seconds_bucket{handler=a.b,le=10.0}"] == 3


def test_the_newest_tick_of_each_row_says_how_late_it_was(client):
    now = clock.now()
    Schedule.objects.create(key="a.b", since=now)
    Schedule.objects.create(key="never.ticked", since=now)
    for ago, late in ((20, 9_000), (10, 1_500)):
        slot = now - timedelta(seconds=ago)
        Tick.objects.create(
            handler="a.b", trigger="slot", slot=slot, at=slot, term=1, lateness_ms=late
        )
    Tick.objects.create(
        handler="a.b", trigger="operator", slot=now, at=now, term=1, lateness_ms=77_000
    )
    found = scrape(client)
    assert found["millrace_tick_lateness_seconds{handler=a.b}"] == 1.5
    at = found["millrace_tick_timestamp_seconds{handler=a.b}"]
    assert at == pytest.approx((now - timedelta(seconds=10)).timestamp(), abs=0.01)
    assert "millrace_tick_lateness_seconds{handler=never.ticked}" not in found


def test_master_and_processes(client):
    assert scrape(client)["millrace_master"] == 0
    metrics._known = None
    elect(factories.node("server"))
    factories.node("server")
    factories.node("worker", status="draining")
    factories.node("worker", status="stopped")
    factories.node("web", heartbeat_at=clock.now() - timedelta(minutes=2))
    found = scrape(client)
    assert (found["millrace_master"], found["millrace_master_term"]) == (1, 41)
    assert found["millrace_nodes{kind=server,state=master}"] == 1
    assert found["millrace_nodes{kind=server,state=standby}"] == 1
    assert found["millrace_nodes{kind=worker,state=draining}"] == 1
    assert found["millrace_nodes{kind=worker,state=running}"] == 0
    assert found["millrace_nodes{kind=web,state=silent}"] == 1
    assert found["millrace_heartbeat_age_seconds{kind=web}"] >= 120


def test_slots_settings_and_pauses(client):
    report = {
        "slots": {"asked": 12, "used": 8, "why": "Its pool serves 8."},
        "in_flight": 3,
        "stuck": 1,
        "settings_version": 0,
    }
    factories.node("worker", report=report)
    factories.node("worker", report={**report, "settings_version": 4})
    factories.node("worker", report=["of another release"])
    pauses.pause(scope="everything", reason="deploy", who="me", origin="command")
    found = scrape(client)
    assert found["millrace_slots_asked"] == 24
    assert (found["millrace_slots"], found["millrace_slots_busy"]) == (16, 6)
    assert found["millrace_threads_stuck"] == 2
    assert (found["millrace_settings_version"], found["millrace_settings_behind"]) == (
        0,
        1,
    )
    assert found["millrace_workers_enabled"] == 1
    assert found["millrace_pauses{scope=everything}"] == 1
    assert found["millrace_pauses{scope=tenant}"] == 0


def test_a_scrape_costs_at_most_nine_statements_and_the_next_ones_nothing(client):
    tally.read(now=clock.now() - timedelta(minutes=5))
    acme = factories.tenant()
    elect(factories.node("server"))
    for number in range(20):
        handler = f"handler.{number}"
        factories.item(acme, handler)
        factories.node("worker")
        Schedule.objects.create(key=handler, since=clock.now())
        recorded(handler=handler, finished_at=clock.now() - timedelta(minutes=1))
    with CaptureQueriesContext(connection) as asked:
        first = client.get("/metrics").content
        again = client.get("/metrics").content
    statements = [
        q["sql"] for q in asked.captured_queries if "SAVEPOINT" not in q["sql"]
    ]
    assert len(statements) <= 9, statements
    assert first == again


def test_openmetrics_is_spoken_to_whoever_asks_for_it(client):
    answer = client.get(
        "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"}
    )
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    names = {
        family.name
        for family in openmetrics.text_string_to_metric_families(
            answer.content.decode()
        )
    }
    assert "millrace_queue_items" in names


def test_in_production_nobody_reads_it_without_a_token(client, settings):
    settings.PRODUCTION = True
    answer = client.get("/metrics")
    assert answer.status_code == 403
    assert b"METRICS_TOKEN is not set" in answer.content


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", "Basic right", "right"]
)
def test_a_wrong_token_is_told_what_is_wanted(client, settings, given):
    settings.METRICS_TOKEN = "right"
    answer = client.get("/metrics", headers={"authorization": given})
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"millrace_" not in answer.content


def test_the_right_token_opens_it(client, settings):
    settings.PRODUCTION, settings.METRICS_TOKEN = True, "right"
    assert "millrace_master" in scrape(client, authorization="Bearer right")


def test_a_database_that_is_away_is_no_error_of_ours(client, monkeypatch):
    def broken(*_, **__):
        raise DatabaseError("away")

    monkeypatch.setattr(figures, "read", broken)
    answer = client.get("/metrics")
    assert (answer.status_code, answer.content) == (
        503,
        b"the database does not answer\n",
    )


def test_a_database_that_hangs_takes_one_thread_of_the_web_process_and_no_more(
    client, monkeypatch
):
    monkeypatch.setattr(metrics, "PATIENCE", 0.01)
    with metrics._lock:  # as whoever reads holds it
        assert client.get("/metrics").status_code == 503
    assert client.get("/metrics").status_code == 200


def test_a_handler_with_a_hostile_name_is_text_and_nothing_else(client):
    factories.item(factories.tenant(), '<script>"\n\\')
    answer = client.get("/metrics")
    assert answer["Content-Type"].startswith("text/plain")
    assert answer["X-Content-Type-Options"] == "nosniff"
    names = [
        sample.labels["handler"]
        for family in text_string_to_metric_families(answer.content.decode())
        if family.name == "millrace_queue_items"
        for sample in family.samples
    ]
    assert '<script>"\n\\' in names


def test_only_modes_with_an_api_have_it(client, settings):
    settings.FALCON_MODE = "web"
    assert client.get("/metrics").status_code == 404


def test_what_has_no_encoding_of_its_own_is_answered_all_the_same(client):
    assert client.head("/metrics").content == b""
    assert client.post("/metrics").status_code == 405
