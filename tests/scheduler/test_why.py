"""Why: each reason in a sentence, the heaviest first."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from audit import clock, ledger
from audit.ledger import RunRecord
from scheduler.election import Election
from scheduler.models import Schedule, Tick
from scheduler.timetable import HEARTBEAT_SET
from scheduler.why import Finding, explain
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import live, pauses, policy
from workqueue.exceptions import UnknownHandler
from workqueue.models import Node, Pause, Tenant
from workqueue.registry import ACTIVE, LICENSED, Handler

type Timetable = Callable[..., tuple[Handler, ...]]


@pytest.fixture
def acme(transactional_db: None) -> Tenant:
    return factories.tenant("acme")


@pytest.fixture
def healthy(master: Election, timetable: Timetable, acme: Tenant) -> Tenant:
    """A master, a worker that knows the rows, and a row that has been seen."""
    timetable(
        row("plain", title="Plain Handler"), row("probed", title="Probed Handler")
    )
    factories.node(report={"handlers": ["plain", "probed"]})
    for key in ("plain", "probed"):
        Schedule.objects.create(key=key, since=clock.now(), effective="10s UTC")
    return acme


def why(tenant: Tenant, key: str = "plain") -> dict[str, Finding]:
    live.forget()
    return {one.code: one for one in explain(key, tenant=tenant)}


def reasons(tenant: Tenant, key: str = "plain") -> list[str]:
    return [one.code for one in why(tenant, key).values() if one.reason]


def item(tenant: Tenant, **values: Any) -> None:
    factories.item(
        tenant, "plain", **{"tenant_slug": tenant.slug, "trigger": "slot", **values}
    )


@pytest.mark.parametrize("here", ["", "https://beat.example.com/x"])
def test_what_a_row_asks_of_the_environment_is_judged_by_the_masters(
    healthy: Tenant, timetable: Timetable, settings: Any, here: str
) -> None:
    """The shell in which somebody asks may have other variables, or none."""
    settings.HEARTBEAT_URL = here
    timetable(row("plain", scope="platform", eligible=(ACTIVE, HEARTBEAT_SET)))
    platform, master = factories.platform(), Node.objects.get(kind="server")
    master.report = {"not_set": ["HEARTBEAT_URL"]}
    master.save()
    assert (
        why(platform)["not_eligible"].text
        == f"platform is not eligible: HEARTBEAT_URL is not set where the master runs ({master})."
    )
    master.report = {"not_set": []}
    master.save()
    assert "not_eligible" not in why(platform)


def test_without_a_master_that_tells_it_is_said_whose_environment_was_looked_at(
    acme: Tenant, timetable: Timetable, settings: Any
) -> None:
    settings.HEARTBEAT_URL = ""
    timetable(row("plain", scope="platform", eligible=(ACTIVE, HEARTBEAT_SET)))
    assert (
        "is not set in the environment of this command; no master tells"
        in why(factories.platform())["not_eligible"].text
    )


def test_where_all_is_well_there_are_facts_and_no_reason(healthy: Tenant) -> None:
    found = why(healthy)
    assert reasons(healthy) == []
    assert list(found) == ["master", "next_slot", "never_ticked", "never_ran"]
    assert found["next_slot"].text.startswith("Every 10\N{NO-BREAK SPACE}s; next ")


def test_a_pause_is_named_with_who_why_and_until(healthy: Tenant) -> None:
    until = clock.now() + timedelta(hours=2)
    pauses.pause(
        scope=Pause.Scope.HANDLER,
        handler="plain",
        reason="upgrade",
        who="ann",
        origin="command",
        until=until,
    )
    text = why(healthy)["paused"].text
    assert text.startswith(
        f"Plain Handler is paused until {until:%Y-%m-%d %H:%M} UTC, for another "
    )
    assert text.endswith("by ann: “upgrade”.")


def test_a_pause_of_the_tenant_is_named(healthy: Tenant) -> None:
    pauses.pause(
        scope=Pause.Scope.TENANT,
        tenant=healthy,
        reason="moved",
        who="ann",
        origin="command",
    )
    assert why(healthy)["paused"].text.startswith("Tenant acme is paused since ")
    assert "paused" not in why(factories.tenant("bolt"))


def test_the_first_condition_that_does_not_hold_is_named(
    healthy: Tenant, timetable: Timetable
) -> None:
    timetable(row("plain", eligible=(ACTIVE, LICENSED)))
    Tenant.objects.filter(pk=healthy.pk).update(
        licence_expires_at=clock.now() - timedelta(days=1)
    )
    assert why(healthy)["not_eligible"].text == "acme is not eligible: licence expired."
    Tenant.objects.filter(pk=healthy.pk).update(is_active=False)
    assert why(healthy)["not_eligible"].text == "acme is not eligible: inactive."


def test_a_row_of_platform_scope_never_runs_for_a_tenant(
    healthy: Tenant, timetable: Timetable
) -> None:
    timetable(row("plain", scope="platform"))
    assert reasons(healthy) == ["platform_scope"]
    assert reasons(factories.platform()) == []


def test_an_item_that_runs_is_named_with_since_and_where(healthy: Tenant) -> None:
    started = clock.now() - timedelta(minutes=7)
    item(
        healthy,
        status="executing",
        started_at=started,
        node="queue-2, 17",
        claim_id=uuid4(),
    )
    text = why(healthy)["executing"].text
    assert text.startswith("It still runs, for 7\N{NO-BREAK SPACE}min")
    assert "on queue-2, 17" in text


def test_an_item_that_is_held_waits_or_waits_for_its_time_is_named(
    healthy: Tenant,
) -> None:
    item(healthy, status="held", held_reason="its worker died 3 times")
    item(healthy, dedup_key="one")
    item(
        healthy,
        dedup_key="two",
        not_before=clock.now() + timedelta(minutes=10),
        last_error="ValueError: wrong",
    )
    found = why(healthy)
    assert "is held: its worker died 3 times" in found["held"].text
    assert "(one) waits for a worker" in found["waiting"].text
    assert "(two) waits for another " in found["waits_for_time"].text
    assert found["waits_for_time"].text.endswith("after: ValueError: wrong.")


def test_no_worker_and_none_that_knows_the_handler_are_two_reasons(
    healthy: Tenant,
) -> None:
    from workqueue.models import Node

    Node.objects.filter(kind="worker").update(report={"handlers": ["other"]})
    assert reasons(healthy) == ["unknown_to_workers"]
    Node.objects.filter(kind="worker").update(status="stopped")
    assert reasons(healthy) == ["no_worker"]
    assert "manage.py runworker" in why(healthy)["no_worker"].text


def test_workers_that_are_switched_off_are_named(healthy: Tenant) -> None:
    policy.save({"START_WORKERS_ON_MASTER": False}, who="ann", origin="command", why="")
    assert reasons(healthy) == ["workers_off"]


def test_no_master_is_named_with_the_last_one(
    healthy: Tenant, master: Election
) -> None:
    master.resign(text="told to stop")
    text = why(healthy)["no_master"].text
    assert "There is no master, so nothing ticks; the last was " in text
    assert "1\N{NO-BREAK SPACE}server node alive" in text


def test_a_flagged_row_is_named(healthy: Tenant) -> None:
    Schedule.objects.filter(key="plain").update(cadence="0 0 30 2 *")
    assert reasons(healthy) == ["problem"]
    assert "no such day-of-month" in why(healthy)["problem"].text


def test_nothing_to_do_is_a_reason_only_where_the_probe_decides(
    healthy: Tenant,
) -> None:
    assert reasons(healthy, "probed") == []
    policy.save({"ENQUEUE_MODE": "due"}, who="ann", origin="command", why="")
    assert reasons(healthy, "probed") == ["nothing_due"]
    Tenant.objects.filter(pk=healthy.pk).update(name="Busy acme")
    assert reasons(healthy, "probed") == []


def test_a_tenant_that_the_last_tick_left_out_is_named(healthy: Tenant) -> None:
    now = clock.now()
    Tick.objects.create(
        handler="plain",
        trigger="slot",
        slot=now,
        at=now,
        term=1,
        blocked=1,
        blocked_tenants=[healthy.pk],
    )
    assert reasons(healthy) == ["blocked"]


def test_a_tenant_that_a_slow_database_left_without_an_item_is_told_so(
    healthy: Tenant,
) -> None:
    now = clock.now()
    Tick.objects.create(
        handler="plain", trigger="slot", slot=now, at=now, term=1, blocked=70_000
    )
    assert reasons(healthy) == ["not_reached"]
    assert "70,000\N{NO-BREAK SPACE}tenants" in why(healthy)["not_reached"].text
    assert "70,000 not reached" in why(healthy)["last_tick"].text
    item(healthy)
    assert reasons(healthy) == ["waiting"]


def test_the_last_tick_and_the_last_run_are_facts(healthy: Tenant) -> None:
    now = clock.now()
    Tick.objects.create(
        handler="plain",
        trigger="slot",
        slot=now,
        at=now,
        term=1,
        enqueued=9,
        still_running=2,
        missed=1,
        not_eligible={"inactive": 3},
    )
    ledger.record(
        [
            RunRecord(
                id=clock.uuid7(),
                tenant_id=healthy.pk,
                tenant="acme",
                handler="plain",
                trigger="slot",
                enqueued_at=now,
                started_at=now,
                finished_at=now,
                outcome="failed",
                error="ValueError: wrong",
            )
        ],
        finish_id=uuid4(),
    )
    found = why(healthy)
    assert found["last_tick"].text.endswith(
        "(slot): 9 enqueued, 2 still running, 3 inactive; it stood for 1\N{NO-BREAK SPACE}missed slot too."
    )
    assert found["last_run"].text == "Last run failed just now: ValueError: wrong."


def test_a_run_that_was_asked_for_is_a_fact(healthy: Tenant) -> None:
    Schedule.objects.filter(key="plain").update(
        run_requested_at=clock.now(), run_requested_by="ann"
    )
    assert "by ann" in why(healthy)["run_requested"].text


def test_a_row_on_demand_says_so(healthy: Tenant, timetable: Timetable) -> None:
    timetable(row("plain", cadence=None))
    assert (
        why(healthy)["on_demand"].text == "It has no cadence: it runs on demand only."
    )


def test_reasons_come_first(healthy: Tenant, master: Election) -> None:
    item(healthy)
    master.resign(text="told to stop")
    flags = [one.reason for one in explain("plain", tenant=healthy)]
    assert flags == sorted(flags, reverse=True)
    assert flags.count(True) == 2


def test_an_unknown_handler_is_an_error(acme: Tenant, timetable: Timetable) -> None:
    with pytest.raises(UnknownHandler):
        explain("retired", tenant=acme)
