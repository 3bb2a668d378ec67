"""The queue's commands as an operator types them."""

import json
import socket
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from audit import clock
from audit.models import Change
from scheduler.models import MasterLease
from tests import factories
from workqueue import node
from workqueue.models import Node, Tenant

pytestmark = pytest.mark.django_db

HERE = socket.gethostname()


def output(name: str, *arguments: str) -> tuple[int, str]:
    """Exit code and what it printed."""
    out = StringIO()
    try:
        call_command(name, *arguments, stdout=out, stderr=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


# --- workerhealth


def test_a_host_whose_worker_beats_is_healthy() -> None:
    factories.node("worker", host=HERE)
    code, told = output("workerhealth")
    assert code == 0
    assert "beats, last beat 0 s ago, running" in told


def test_a_host_whose_newest_worker_is_silent_is_not() -> None:
    factories.node("worker", host=HERE, heartbeat_at=clock.now() - timedelta(hours=1))
    code, told = output("workerhealth")
    assert code == 1
    assert "is silent, last beat 3600 s ago" in told


def test_the_row_of_a_crashed_worker_does_not_make_its_successor_sick() -> None:
    old = clock.now() - timedelta(hours=1)
    factories.node("worker", host=HERE, heartbeat_at=old, started_at=old)
    factories.node("worker", host=HERE)
    assert output("workerhealth")[0] == 0


def test_a_host_without_any_worker_is_not_healthy() -> None:
    factories.node("worker", host="another")
    factories.node("worker", host=HERE, status="stopped")
    code, told = output("workerhealth")
    assert (code, told) == (1, "no worker or jobworker has registered on this host\n")


def test_a_kind_that_is_asked_for_must_be_there() -> None:
    factories.node("worker", host=HERE)
    assert output("workerhealth", "--kind", "worker")[0] == 0
    code, told = output("workerhealth", "--kind", "worker", "--kind", "jobworker")
    assert code == 1
    assert "no jobworker has registered" in told


def test_health_as_json() -> None:
    one = factories.node("server", host=HERE)
    code, told = output("workerhealth", "--kind", "server", "--json")
    found = json.loads(told)
    assert (code, found["healthy"]) == (0, True)
    assert found["nodes"][0] | {"last_beat_s": 0} == {
        "id": str(one.pk), "kind": "server", "name": str(one), "status": "running",
        "fresh": True, "last_beat_s": 0,
    }  # fmt: skip


def test_without_a_database_nobody_can_say_and_nobody_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(**_: Any) -> Any:
        raise OperationalError("connection refused")

    monkeypatch.setattr(node, "on_this_host", away)
    code, told = output("workerhealth")
    assert (code, told.strip()) == (
        69,
        "it cannot be known, the database says: connection refused",
    )


# --- createtenant


def test_a_tenant_is_made_by_command_and_the_change_says_who() -> None:
    code, told = output(
        "createtenant", "acme", "--name", "Acme Ltd.", "--time-zone", "Europe/Vienna",
        "--module", "compliance", "--licence-until", "2027-12-31", "--why", "CHG-1", "--json",
    )  # fmt: skip
    made = Tenant.objects.get(slug="acme")
    assert code == 0
    assert json.loads(told) == {
        "id": made.pk, "slug": "acme", "name": "Acme Ltd.", "time_zone": "Europe/Vienna",
        "modules": ["compliance"], "licence_expires_at": "2027-12-31T23:59:59+00:00",
    }  # fmt: skip
    change = Change.objects.get()
    assert (change.origin, change.why, change.tenant_id) == (
        "command",
        "CHG-1",
        made.pk,
    )
    assert change.who


def test_a_tenant_made_without_json_is_told_in_a_sentence() -> None:
    _, told = output("createtenant", "acme", "--name", "Acme")
    assert told == "Tenant acme is made; it takes part from the next tick on.\n"


@pytest.mark.parametrize("slug", ["acme", "ACME"])
def test_a_tenant_that_exists_is_refused_in_any_case(slug: str) -> None:
    factories.tenant("acme")
    with pytest.raises(CommandError, match="slug: There is a tenant 'acme' already"):
        call_command("createtenant", slug, "--name", "Acme")


@pytest.mark.parametrize("day", ["tomorrow", "2027-02-30"])
def test_a_licence_until_no_day_is_a_usage_error(day: str) -> None:
    with pytest.raises(CommandError, match="licence-until"):
        call_command("createtenant", "acme", "--name", "Acme", "--licence-until", day)


# --- checkinvariants


@pytest.mark.django_db(transaction=True)
def test_where_all_rules_hold_the_exit_code_is_0() -> None:
    code, told = output("checkinvariants")
    assert code == 0
    assert told.endswith("rules hold.\n")
    assert json.loads(output("checkinvariants", "--json")[1])["ok"] is True


@pytest.mark.parametrize("hours", ["0", "-1", "1e9", "nan", "inf", "many", ""])
def test_a_time_that_nothing_can_be_checked_in_is_refused(hours: str) -> None:
    with pytest.raises(CommandError, match="is no number of hours more than 0"):
        call_command("checkinvariants", f"--hours={hours}")


@pytest.mark.django_db(transaction=True)
def test_a_broken_rule_is_printed_with_its_rows_and_exit_code_1() -> None:
    MasterLease.objects.all().delete()
    code, told = output("checkinvariants", "--hours", "1")
    assert code == 1
    assert "I6 does not hold: There is one lease.\n  leases=0\n" in told
    code, told = output("checkinvariants", "--json")
    assert code == 1
    assert json.loads(told)["broken"][0]["rows"] == [{"leases": 0}]
    assert Node.objects.count() == 0
