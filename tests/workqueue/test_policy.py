"""Worker Node Configuration: saved in versions, restored, and never lost to a second saver."""

from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections

from audit.models import Change
from workqueue import policy, sql
from workqueue.exceptions import InvalidValues, VersionConflict
from workqueue.models import Setting

BY = {"who": "operator", "origin": "admin", "why": "Monday's wave"}
NAME = "Worker Node Configuration"

pytestmark = pytest.mark.django_db


def test_the_defaults_and_bounds_are_the_documented_ones(settings: Any) -> None:
    settings.KEEP_ALIVE = timedelta(seconds=25)
    found = {
        key.name: (key.default, key.low, key.high)
        for key in policy.WORKER_NODE_CONFIGURATION.keys
        if key.type == "integer"
    }
    assert found == {
        "WORKER_CONCURRENCY": (10, 1, 500),
        "WORKER_POLL_INTERVAL_MS": (10_000, 100, 600_000),
        "WORKER_CLAIM_TIMEOUT_SECONDS": (600, 30, 86_400),
        "WORKER_RECLAIM_INTERVAL_MS": (60_000, 1_000, 3_600_000),
    }
    used, adjusted = policy.resolve({})
    assert used.start_workers is True
    assert used.enqueue_mode == "every"
    assert used.claim_timeout == timedelta(minutes=10)
    assert adjusted == ()


@pytest.mark.parametrize(
    ("keep_alive", "low"), [(25, 30), (2, 3), (10, 12), (100, 120), (600, 600)]
)
def test_the_claim_timeout_is_three_beats_at_least_and_the_default_always_allowed(
    settings: Any, keep_alive: int, low: int
) -> None:
    """With less a running item is taken from its worker before its first renewal."""
    settings.KEEP_ALIVE = timedelta(seconds=keep_alive)
    stored = {"WORKER_CLAIM_TIMEOUT_SECONDS": low - 1}
    with pytest.raises(InvalidValues, match=f"Enter a number from {low} to 86,400"):
        policy.clean(stored)
    used, [adjusted] = policy.resolve(stored)
    assert used.claim_timeout == timedelta(seconds=low)
    assert (adjusted.asked, adjusted.used) == (str(low - 1), str(low))
    assert adjusted.why.startswith(f"{low - 1} is below the range.")
    assert policy.resolve({"WORKER_CLAIM_TIMEOUT_SECONDS": low})[1] == ()
    assert policy.clean({"WORKER_CLAIM_TIMEOUT_SECONDS": 600}) == {}


def test_a_refused_value_is_told_with_the_range_in_the_words_of_the_screen() -> None:
    with pytest.raises(InvalidValues) as refused:
        policy.save(
            {"WORKER_RECLAIM_INTERVAL_MS": "500", "ENQUEUE_MODE": "never"}, **BY
        )
    assert refused.value.problems == {
        "WORKER_RECLAIM_INTERVAL_MS": "500 is below the range. Enter a number from 1,000 to 3,600,000.",
        "ENQUEUE_MODE": "“never” is not one of the choices. Choose every or due.",
    }
    assert not Setting.objects.exists()
    assert not Change.objects.exists()


def test_a_key_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidValues, match="There is no such key"):
        policy.clean({"WORKER_COLOUR": "red"})


def test_saving_writes_a_version_and_a_change_and_only_what_differs_from_the_defaults() -> (
    None
):
    values = {
        "WORKER_CONCURRENCY": " 12 ",
        "WORKER_POLL_INTERVAL_MS": "10000",
        "ENQUEUE_MODE": "",
    }
    saved = policy.save(values, **BY)
    assert (saved.version, saved.values, saved.who) == (
        1,
        {"WORKER_CONCURRENCY": 12},
        "operator",
    )
    change = Change.objects.get()
    assert (change.subject, change.verb) == (f"setting:{NAME}", "changed")
    assert (change.old, change.new) == ({}, {"WORKER_CONCURRENCY": 12})
    assert (change.who, change.why) == ("operator", "Monday's wave")


def test_saving_what_is_in_force_anyway_writes_nothing() -> None:
    assert policy.save({"WORKER_CONCURRENCY": "10"}, **BY).version == 0
    first = policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    assert policy.save({"WORKER_CONCURRENCY": "12"}, **BY) == first
    assert Change.objects.count() == 1
    # A default that somebody wrote by SQL is the default all the same.
    Setting.objects.update(values={"WORKER_CONCURRENCY": 10})
    assert policy.save({}, **BY).version == 1
    # A value that is clamped is not what is in force: saving it anew mends it.
    Setting.objects.update(values={"WORKER_CONCURRENCY": 9_000})
    assert policy.save({"WORKER_CONCURRENCY": 500}, **BY).version == 2


def test_the_second_of_two_savers_is_told_and_nothing_is_lost() -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, **BY, expected_version=0)
    with pytest.raises(VersionConflict, match="Version 1 was saved by operator"):
        policy.save({"WORKER_CONCURRENCY": 20}, **BY, expected_version=0)
    assert [row.values for row in policy.history()] == [{"WORKER_CONCURRENCY": 12}]


def test_after_the_highest_version_somebody_is_told_which_row_is_in_the_way() -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    Setting.objects.update(version=policy.HIGHEST_VERSION)
    with pytest.raises(VersionConflict, match="Version 2147483647 is the highest"):
        policy.save({"WORKER_CONCURRENCY": 20}, **BY, expected_version=2147483647)


def test_restoring_writes_a_new_version_with_the_old_values() -> None:
    policy.save({"WORKER_CONCURRENCY": 12}, **BY)
    policy.save({"WORKER_CONCURRENCY": 20}, **BY)
    restored = policy.restore(1, who="admin", origin="command", why="too many")
    assert (restored.version, restored.values, restored.restored_from) == (
        3,
        {"WORKER_CONCURRENCY": 12},
        1,
    )
    change = Change.objects.latest("id")
    assert (change.verb, change.old, change.new) == (
        "restored",
        {"WORKER_CONCURRENCY": 20},
        {"WORKER_CONCURRENCY": 12},
    )
    assert [row.version for row in policy.history()] == [3, 2, 1]


def test_a_version_with_values_that_forms_refuse_is_not_restored() -> None:
    Setting.objects.create(
        name=NAME,
        version=1,
        values={"WORKER_CONCURRENCY": 0},
        at="2026-01-01T00:00Z",
        who="sql",
        origin="admin",
    )
    with pytest.raises(InvalidValues, match="0 is below the range"):
        policy.restore(1, **BY)


def test_a_version_that_holds_something_else_than_values_can_be_listed_and_not_restored() -> (
    None
):
    Setting.objects.create(
        name=NAME,
        version=1,
        values=[1],
        at="2026-01-01T00:00Z",
        who="sql",
        origin="admin",
    )
    assert policy.history()[0].values == [1]
    with pytest.raises(InvalidValues):
        policy.restore(1, **BY)


def test_the_statement_that_reads_live_settings_names_this_setting() -> None:
    assert f"'{policy.WORKER_NODE_CONFIGURATION.name}'" in sql.LIVE_POSTGRESQL
    assert f"'{policy.WORKER_NODE_CONFIGURATION.name}'" in sql.LIVE_SQLITE


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_savers_at_the_same_moment_each_has_a_version_of_its_own() -> None:
    barrier, told = Barrier(4), []

    def save(number: int) -> None:
        barrier.wait(10)
        try:
            policy.save({"WORKER_CONCURRENCY": number}, **BY, expected_version=0)
        except VersionConflict:
            told.append(number)
        finally:
            connections.close_all()

    threads = [Thread(target=save, args=(n,)) for n in (21, 22, 23, 24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [row.version for row in policy.history()] == [1]
    assert len(told) == 3
    assert Change.objects.count() == 1


@pytest.mark.django_db
def test_a_secret_in_a_why_is_masked() -> None:
    why = "password=hunter2hunter2"
    row = policy.save({"WORKER_CONCURRENCY": 3}, who="a", origin="admin", why=why)
    assert "hunter2" not in row.why
