"""What processes use of a setting, from their own reports, whatever stands in them."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import JSONField, Value

from audit import clock
from tests import factories
from workqueue import policy, readout
from workqueue.models import Node, Setting
from workqueue.policy import WORKER_NODE_CONFIGURATION as DECLARATION

pytestmark = pytest.mark.django_db
REASON = (
    "Its pool of 12 connections serves 8. Raise DB_POOL_SIZE or DB_MAX_OVERFLOW there."
)


def worker(
    host: str, *, version: int = 1, used: int = 12, why: str = "", **more: Any
) -> Node:
    report = {
        "slots": {"asked": 12, "used": used, "why": why},
        "settings_version": version,
        "policy": {
            "WORKER_CONCURRENCY": used,
            "WORKER_POLL_INTERVAL_MS": 10_000,
            "START_WORKERS_ON_MASTER": True,
        },
        "adjusted": [],
        "loop": "running",
        **more,
    }
    return factories.node(host=host, report=report)


def stored(version: int, values: Any) -> dict[str, Any]:
    """A version as somebody wrote it by SQL."""
    return {
        "name": DECLARATION.name,
        "version": version,
        "values": values,
        "at": clock.now(),
        "who": "anna",
        "origin": "command",
    }


def row(
    key: str,
    *,
    typed: dict[str, str] | None = None,
    problems: dict[str, str] | None = None,
) -> readout.Row:
    newest = Setting.objects.newest(DECLARATION.name)
    rows = readout.rows(
        DECLARATION,
        newest,
        readout.processes(clock.now()),
        typed=typed,
        problems=problems or {},
    )
    return next(each for each in rows if each.key.name == key)


def test_a_reduced_process_stands_apart_with_its_reason():
    for host in ("app-1", "app-2"):
        worker(host)
    worker("queue-2", used=8, why=REASON)
    whole, reduced = row("WORKER_CONCURRENCY").effective
    assert (whole.value, whole.where, whole.reduced) == ("12", "on app-1, app-2", False)
    assert (reduced.reduced_words, reduced.why) == ("8 on queue-2", REASON)
    [poll] = row("WORKER_POLL_INTERVAL_MS").effective
    assert (poll.value.replace("\u00a0", " "), poll.where) == (
        "10 s",
        "in every process",
    )
    assert row("START_WORKERS_ON_MASTER").effective[0].value == "on"


def test_an_adjusted_value_says_why():
    worker(
        "app-1",
        adjusted=[
            {
                "key": "WORKER_POLL_INTERVAL_MS",
                "asked": "5",
                "used": "100",
                "why": "5 is below the range.",
            }
        ],
    )
    [poll] = row("WORKER_POLL_INTERVAL_MS").effective
    assert (poll.reduced, poll.why) == (True, "5 is below the range.")


def test_the_spread_names_who_is_late_and_when_it_will_say_so(settings: Any):
    settings.KEEP_ALIVE = timedelta(seconds=25)
    policy.save({"WORKER_CONCURRENCY": 12}, who="anna", origin="admin", why="")
    now = clock.now()
    worker("app-1")
    late = worker("queue-2", version=0)
    Node.objects.filter(pk=late.pk).update(heartbeat_at=now - timedelta(seconds=4.41))
    spread = readout.spread(
        readout.processes(now), Setting.objects.newest(DECLARATION.name), now=now
    )
    assert (spread.applying, spread.count) == (1, 2)
    [(process, due)] = spread.late
    assert process.name == "queue-2"
    assert due == timedelta(seconds=6)  # a beat is never early, so never 5.59 s


def test_processes_of_one_host_are_told_apart_and_others_are_left_out():
    worker("app-1")
    worker("app-1")
    factories.node(kind=Node.Kind.SERVER, host="server")
    factories.node(host="gone", status=Node.Status.STOPPED)
    names = [each.name for each in readout.processes(clock.now())]
    assert len(set(names)) == 2
    assert all(name.startswith("app-1, ") for name in names)


def test_what_was_typed_stays_in_the_field_with_its_problem():
    shown = row(
        "WORKER_RECLAIM_INTERVAL_MS",
        typed={"WORKER_RECLAIM_INTERVAL_MS": "500"},
        problems={"WORKER_RECLAIM_INTERVAL_MS": "No."},
    )
    assert (shown.text, shown.problem, shown.changed) == ("500", "No.", True)
    assert (
        row("WORKER_RECLAIM_INTERVAL_MS").default
        == "Default 60,000, from 1,000 to 3,600,000"
    )


def test_history_says_what_each_version_changed_of_the_one_before():
    policy.save({"WORKER_CONCURRENCY": 12}, who="anna", origin="admin", why="wave")
    policy.save(
        {"WORKER_CONCURRENCY": 12, "ENQUEUE_MODE": "due"},
        who="anna",
        origin="admin",
        why="",
    )
    policy.restore(1, who="bert", origin="admin", why="no")
    found = readout.history(list(policy.history()), declaration=DECLARATION)
    assert [each.changes for each in found] == [
        (("ENQUEUE_MODE", "due", "every"),),
        (("ENQUEUE_MODE", "every", "due"),),
        (("WORKER_CONCURRENCY", "10", "12"),),
    ]
    assert [each.in_force for each in found] == [True, False, False]


@pytest.mark.parametrize(
    ("value", "told"),
    [(True, "true"), (1, "1"), (1.5, "1.5"), ("1", "“1”"), (None, "null"), ([1], "[1]")],
)  # fmt: skip
def test_history_says_what_is_stored_in_whatever_form(value: Any, told: str):
    Setting.objects.create(**stored(1, {"WORKER_CONCURRENCY": 1 if told != "1" else 2}))
    Setting.objects.create(**stored(2, {"WORKER_CONCURRENCY": value, "OLD": value}))
    newest, _ = readout.history(list(policy.history()), declaration=DECLARATION)
    assert newest.changes[0] == (
        "WORKER_CONCURRENCY",
        "1" if told != "1" else "2",
        told,
    )
    assert newest.changes[1] == ("OLD", "", told)
    assert newest.odd == ""


@pytest.mark.parametrize(
    ("value", "told"), [([1, 2], "[1, 2]"), ("x", "“x”"), (None, "null"), (True, "true")]
)  # fmt: skip
def test_history_says_of_what_is_no_set_of_values_that_it_is_none(
    value: Any, told: str
):
    Setting.objects.create(**stored(1, {"WORKER_CONCURRENCY": 12}))
    Setting.objects.create(**stored(2, Value(value, JSONField())))
    newest, _ = readout.history(list(policy.history()), declaration=DECLARATION)
    assert newest.odd == told
    assert newest.changes == (("WORKER_CONCURRENCY", "12", "10"),)


@pytest.mark.parametrize(
    "report",
    [
        {},
        [],
        "x",
        5,
        {
            "slots": 1,
            "policy": [],
            "adjusted": 3,
            "settings_version": "x",
            "loop": None,
        },
        {"adjusted": ["x", {}]},
    ],
)
def test_no_report_and_no_stored_value_breaks_the_page(report: Any):
    factories.node(report=report)
    Setting.objects.create(
        name=DECLARATION.name,
        version=1,
        values=report,
        at=clock.now(),
        who="sql",
        origin="command",
    )
    newest = Setting.objects.newest(DECLARATION.name)
    processes = readout.processes(clock.now())
    assert readout.rows(DECLARATION, newest, processes, typed=None, problems={})
    assert readout.history([newest], declaration=DECLARATION)
    assert readout.spread(processes, newest, now=clock.now()).count == 1


def test_what_every_tick_costs_is_counted(timetable: None):
    assert readout.enqueues() == ""
