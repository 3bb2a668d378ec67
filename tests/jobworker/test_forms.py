"""A form made from a type's parameters."""

import pytest

from jobworker import forms
from tests.jobworker.screening import types  # noqa: F401


def by_name(
    typed: dict[str, str], problems: dict[str, str] | None = None
) -> dict[str, forms.Field]:
    return {
        each.param.name: each for each in forms.fields("grow", typed, problems or {})
    }


def test_each_parameter_is_entered_by_its_kind():
    kinds = {name: field.kind for name, field in by_name({}).items()}
    assert kinds == {
        "name": "text",
        "nodes": "number",
        "size": "choice",
        "keep": "box",
        "admin_password": "secret",
    }


def test_a_new_form_has_the_defaults():
    typed = forms.prefilled("grow", {})
    assert typed == {
        "name": "",
        "nodes": "2",
        "size": "small",
        "keep": "off",
        "admin_password": "",
    }


def test_an_earlier_jobs_parameters_are_filled_in_but_no_secret_and_nothing_unknown():
    stored = {
        "name": "vega",
        "keep": True,
        "admin_password": "hunter22",
        "colour": "red",
    }
    typed = forms.prefilled("grow", stored)
    assert (typed["name"], typed["keep"], typed["admin_password"]) == ("vega", "on", "")
    assert "colour" not in typed
    assert forms.prefilled("grow", "spoilt")["nodes"] == "2"


def test_what_was_typed_and_what_is_wrong_with_it_stand_together():
    field = by_name({"nodes": "500"}, {"nodes": "500 is above the range."})["nodes"]
    assert (field.text, field.problem) == ("500", "500 is above the range.")


def test_a_box_that_is_not_sent_is_off():
    assert forms.typed("grow", {"p-name": "vega"})["keep"] == "off"
    assert forms.typed("grow", {"p-keep": "on"})["keep"] == "on"


@pytest.mark.parametrize(
    ("text", "value", "refused"),
    [
        ("", 0, False),
        (" 7 ", 7, False),
        ("-100", -100, False),
        ("101", 0, True),
        ("x", 0, True),
    ],
)
def test_a_priority_is_in_its_range(text: str, value: int, refused: bool):
    found, problem = forms.priority(text)
    assert (found, bool(problem)) == (value, refused)
