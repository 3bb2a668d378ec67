"""Checks of the timetable: each says what is wrong and what to type."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks.registry import registry

from scheduler import bootstrap
from scheduler.checks import check_bootstrap, check_timetable
from tests.scheduler.timetable_for_tests import row
from workqueue.registry import Handler, Misfire

pytestmark = pytest.mark.once


def found(messages: list[Any]) -> list[str]:
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        ("scheduler.E003", {"purpose": ""}),
        ("scheduler.E003", {"title": " "}),
        ("scheduler.E004", {"cadence": "0 0 30 2 *"}),
        ("scheduler.E005", {"cadence": "5s"}),
        ("scheduler.E007", {"scope": "nowhere.to.be.found"}),
        ("scheduler.E008", {"misfire": Misfire(rule="sometimes")}),
        ("scheduler.E008", {"misfire": Misfire(rule="all", at_most=0)}),
        ("scheduler.E009", {"abandon": "shrug"}),
    ],
)
def test_a_row_that_is_wrong_is_named(
    timetable: Callable[..., tuple[Handler, ...]], id: str, wrong: dict[str, Any]
) -> None:
    timetable(row("plain", **wrong))
    [message] = check_timetable()
    assert found([message]) == [id]
    assert "plain" in message.msg


def test_a_fast_row_without_due_is_named_though_nothing_has_loaded_its_module(
    timetable: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable(row("plain", cadence="5s"))
    monkeypatch.delitem(sys.modules, "tests.handlers.plain", raising=False)
    monkeypatch.delattr("tests.handlers.plain", raising=False)
    assert found(check_timetable()) == ["scheduler.E005"]


def test_a_row_without_a_module_is_named(timetable: Callable[..., Any]) -> None:
    timetable(row("missing"))
    assert found(check_timetable()) == ["scheduler.E006"]


def test_two_rows_with_one_key_are_named(timetable: Callable[..., Any]) -> None:
    timetable(row("plain"), row("plain"))
    assert found(check_timetable()) == ["scheduler.E002"]


def test_a_timetable_that_does_not_import_is_named(settings: Any) -> None:
    settings.WORKQUEUE_HANDLERS = "nowhere.TIMETABLE"
    assert found(check_timetable()) == ["scheduler.E001"]


def test_a_step_of_the_bootstrap_that_does_not_import_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bootstrap, "BUILT_IN_RECORDS", ("nowhere.step",))
    assert found(check_bootstrap()) == ["scheduler.E010"]


def test_two_data_steps_with_one_name_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = "tests.scheduler.steps.add_a_tenant"
    monkeypatch.setattr(bootstrap, "BUILT_IN_RECORDS", ())
    monkeypatch.setattr(bootstrap, "DATA_STEPS", (("same", step), ("same", step)))
    assert found(check_bootstrap()) == ["scheduler.E011"]


def test_good_rows_pass(timetable: Callable[..., Any]) -> None:
    pairs = "tests.scheduler.runs.paired.pairs"
    timetable(
        row("plain"),
        row("probed", cadence="2s"),
        row("paired", scope=pairs),
        row("started", cadence=None),
    )
    assert check_timetable() == []


def test_the_product_passes_and_its_checks_are_registered() -> None:
    assert [*check_timetable(), *check_bootstrap()] == []
    assert {check_timetable, check_bootstrap} <= registry.registered_checks
