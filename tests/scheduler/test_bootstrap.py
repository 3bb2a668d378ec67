"""Bootstrap: once per term, each step alone, repeated without harm."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from scheduler import bootstrap as module
from scheduler.bootstrap import bootstrap
from scheduler.election import Election
from scheduler.exceptions import NotMaster
from scheduler.look import look
from scheduler.models import BootstrapStep, MasterLease, Tick
from scheduler.plan import plans
from tests.scheduler.timetable_for_tests import row
from workqueue import live, node, pauses
from workqueue.models import Pause, Tenant
from workqueue.registry import Handler

type Timetable = Callable[..., tuple[Handler, ...]]
HERE = "tests.scheduler.steps"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Declare steps in place of the product's."""

    def declare(
        *, built_in: tuple[str, ...] = (), data: tuple[tuple[str, str], ...] = ()
    ) -> None:
        monkeypatch.setattr(
            module, "BUILT_IN_RECORDS", tuple(f"{HERE}.{name}" for name in built_in)
        )
        monkeypatch.setattr(
            module, "DATA_STEPS", tuple((name, f"{HERE}.{path}") for name, path in data)
        )

    declare()
    return declare


@pytest.fixture
def run(master: Election, timetable: Timetable, steps: Any) -> Callable[[], bool]:
    def run() -> bool:
        live.forget()
        seen = look()
        return bootstrap(plans(seen, election=master), seen=seen, election=master)

    return run


def test_built_in_records_are_added_at_every_term(run: Any, steps: Any) -> None:
    steps(built_in=("add_a_tenant",))
    assert run()
    assert run()
    assert Tenant.objects.filter(slug__startswith="built-in").count() == 2


def test_a_data_step_is_applied_once_and_recorded_with_its_term(
    run: Any, steps: Any
) -> None:
    steps(data=(("2026-11 one tenant", "add_a_tenant"),))
    assert run()
    assert run()
    assert Tenant.objects.filter(slug__startswith="built-in").count() == 1
    step = BootstrapStep.objects.get()
    assert (step.name, step.term, step.result) == (
        "2026-11 one tenant",
        1,
        "one tenant added",
    )


def test_a_step_that_fails_takes_its_own_changes_back_and_no_others(
    run: Any, steps: Any, caplog: pytest.LogCaptureFixture
) -> None:
    steps(built_in=("add_and_fail", "add_a_tenant"), data=(("broken", "add_and_fail"),))
    assert not run()
    assert Tenant.objects.filter(slug__startswith="built-in").count() == 1
    assert not BootstrapStep.objects.exists()
    assert caplog.text.count("bootstrap step failed") == 2


def test_steps_are_the_masters_transactions(
    run: Any, steps: Any, master: Election
) -> None:
    steps(built_in=("add_a_tenant",))
    MasterLease.objects.update(expires_at=clock.earlier(timedelta(seconds=1)))
    assert Election(me=node.register(kind="server", report={})).take()
    with pytest.raises(NotMaster):
        run()
    assert not Tenant.objects.filter(slug__startswith="built-in").exists()


def test_a_row_that_starts_with_the_term_is_ticked_once_per_term(
    run: Any, timetable: Timetable, master: Election
) -> None:
    timetable(row("started", cadence="12h", at_start=True), row("plain"))
    assert run()
    assert run()
    tick = Tick.objects.get()
    assert (tick.handler, tick.trigger, tick.enqueued) == ("started", "start", 1)
    assert tick.slot == MasterLease.objects.get().since


def test_a_start_is_skipped_where_one_ran_within_its_interval(
    run: Any, timetable: Timetable, master: Election
) -> None:
    timetable(row("started", cadence="12h", at_start=True))
    assert run()
    master.resign(text="again")
    assert master.take()
    assert run()
    assert Tick.objects.count() == 1
    Tick.objects.update(at=clock.now() - timedelta(hours=12, seconds=1))
    assert run()
    assert Tick.objects.filter(trigger="start").count() == 2


def test_a_row_on_demand_that_starts_with_the_term_starts_with_every_term(
    run: Any, timetable: Timetable, master: Election
) -> None:
    timetable(row("started", cadence=None, at_start=True))
    assert run()
    master.resign(text="again")
    assert master.take()
    assert run()
    assert Tick.objects.filter(trigger="start").count() == 2


def test_a_paused_row_does_not_start(run: Any, timetable: Timetable) -> None:
    timetable(row("started", cadence="12h", at_start=True))
    pauses.pause(
        scope=Pause.Scope.EVERYTHING, reason="upgrade", who="ann", origin="command"
    )
    assert run()
    assert not Tick.objects.exists()


def test_the_products_own_steps_import_and_can_be_repeated(
    master: Election, timetable: Timetable
) -> None:
    seen = look()
    for _ in range(2):
        assert bootstrap([], seen=seen, election=master)
