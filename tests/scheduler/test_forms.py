"""What an operator is asked: refusals are sentences that say what to enter."""

import pytest

from scheduler.forms import CadenceForm, Reasoned
from tests.scheduler.timetable_for_tests import row

pytestmark = pytest.mark.once

HANDLER = row("plain", cadence="10s")


def form(cadence: str, why: str = "because") -> CadenceForm:
    return CadenceForm({"cadence": cadence, "why": why}, handler=HANDLER)


@pytest.mark.parametrize(
    ("typed", "taken"),
    [(" 5m ", "5m"), ("daily   23:00", "daily 23:00"), ("", ""), ("10s", "")],
)
def test_the_timetables_own_cadence_is_no_override(typed, taken):
    asked = form(typed)
    assert asked.is_valid()
    assert asked.cleaned_data["cadence"] == taken


@pytest.mark.parametrize(
    "typed",
    [
        "0s",
        "* * * * * *",
        "0 0 31 2 *",
        "daily 25:00",
        "\u0661\u0660s",
        "x" * 101,
        "10 s\0",
    ],
)
def test_a_cadence_that_cannot_be_is_refused_with_a_sentence(typed):
    asked = form(typed)
    assert not asked.is_valid()
    assert len(asked.errors["cadence"][0]) > 20


def test_every_change_says_why():
    assert Reasoned({"why": "  "}).errors["why"] == [
        "Say why: the next operator reads it."
    ]
    assert "at most 500" in Reasoned({"why": "x" * 501}).errors["why"][0]
