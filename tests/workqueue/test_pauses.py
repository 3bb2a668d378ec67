"""Pauses: each has a reason and an end, and both are on record."""

from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections

from audit import clock
from audit.models import Change
from tests import factories
from workqueue import pauses
from workqueue.exceptions import InvalidValues
from workqueue.models import Pause

BY = {"who": "operator", "origin": "admin"}

pytestmark = pytest.mark.django_db


def test_a_pause_is_recorded_with_who_why_and_until() -> None:
    until = clock.now() + timedelta(hours=2)
    row = pauses.pause(
        scope="handler", handler="a.b", reason=" CHG-1 ", until=until, **BY
    )
    change = Change.objects.get()
    assert (row.reason, row.who, row.ended_at) == ("CHG-1", "operator", None)
    assert (change.subject, change.verb, change.why) == (
        "pause:handler:a.b",
        "paused",
        "CHG-1",
    )
    assert change.new["until"] == until.isoformat()


def test_a_tenants_pause_is_on_the_tenants_record() -> None:
    tenant = factories.tenant()
    pauses.pause(scope="tenant", tenant=tenant, reason="r", **BY)
    assert Change.objects.get().tenant_id == tenant.pk


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"scope": "handler"}, "handler"),
        ({"scope": "job_type"}, "handler"),
        ({"scope": "tenant"}, "tenant"),
        ({"scope": "everything", "handler": "a.b"}, "handler"),
        ({"scope": "galaxy"}, "scope"),
        ({"scope": "everything", "reason": "  "}, "reason"),
        ({"scope": "everything", "until": "past"}, "until"),
    ],
)
def test_what_is_missing_or_too_much_is_told_by_field(
    given: dict[str, Any], problem: str
) -> None:
    if given.get("until"):
        given = {**given, "until": clock.now() - timedelta(seconds=1)}
    with pytest.raises(InvalidValues) as refused:
        pauses.pause(**{"reason": "r", **given, **BY})
    assert list(refused.value.problems) == [problem]
    assert not Change.objects.exists()


def test_what_is_paused_already_is_not_paused_twice() -> None:
    pauses.pause(scope="handler", handler="a.b", reason="first", **BY)
    with pytest.raises(InvalidValues, match="paused already, by operator: “first”"):
        pauses.pause(scope="handler", handler="a.b", reason="second", **BY)
    pauses.pause(scope="handler", handler="a.c", reason="another", **BY)
    assert Change.objects.count() == 2


def test_a_pause_whose_time_is_over_gives_way_to_a_new_one() -> None:
    until = clock.now() + timedelta(minutes=1)
    first = pauses.pause(scope="everything", reason="first", until=until, **BY)
    with clock.at(until + timedelta(seconds=1)):
        pauses.pause(scope="everything", reason="second", **BY)
    first.refresh_from_db()
    assert first.ended_at == until
    assert Pause.objects.in_force().get().reason == "second"


def test_resuming_ends_it_once_and_says_by_whom() -> None:
    row = pauses.pause(scope="everything", reason="r", **BY)
    assert pauses.resume(row, who="other", origin="command", why="done")
    assert not pauses.resume(row, who="third", origin="command", why="again")
    row.refresh_from_db()
    assert (row.ended_by, row.ended_at is not None) == ("other", True)
    change = Change.objects.latest("id")
    assert (change.verb, change.who, change.why) == ("resumed", "other", "done")


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_two_who_pause_the_same_at_once_one_is_told() -> None:
    barrier, told = Barrier(2), []

    def pause() -> None:
        barrier.wait(10)
        try:
            pauses.pause(scope="everything", reason="r", **BY)
        except InvalidValues as refused:
            told.append(refused)
        finally:
            connections.close_all()

    threads = [Thread(target=pause) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(told) == 1
    assert Pause.objects.in_force().count() == 1


def test_a_secret_in_a_reason_is_masked_before_everybody_reads_it() -> None:
    row = pauses.pause(scope="everything", reason="password=hunter2hunter2", **BY)
    row.refresh_from_db()
    assert "hunter2" not in row.reason
