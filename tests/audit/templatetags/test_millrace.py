"""The tags: escaped, with the exact time under the pointer."""

from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template

pytestmark = pytest.mark.once

NOW = datetime(2026, 11, 29, 14, 32, 10, tzinfo=UTC)


def render(text: str, **context: object) -> str:
    return Template("{% load millrace %}" + text).render(
        Context({"now": NOW, **context})
    )


def test_a_relative_time_has_the_exact_one_with_it():
    said = render("{% when t %}", t=NOW - timedelta(seconds=7))
    assert said == (
        '<time datetime="2026-11-29T14:32:03Z" title="2026-11-29 14:32:03 UTC">'
        "7\u00a0s ago</time>"
    )


@pytest.mark.parametrize(
    "tag", ["when", "clock", "short", "since", "until", "to_the_second", "exact"]
)
def test_an_unknown_time_is_a_dash(tag):
    assert render("{% " + tag + " t %}", t=None) == "\u2013"


def test_a_state_is_an_icon_and_a_word():
    said = render('{% status "failed" %}')
    assert "#cross" in said
    assert "Failed" in said
    assert "is-fail" in said


def test_success_has_no_colour():
    assert 'class="mr-st"' in render('{% status "succeeded" %}')


def test_a_state_that_nobody_knows_is_shown_as_text():
    assert "&lt;script&gt;" in render("{% status s %}", s="<script>")


def test_hostile_text_is_shown_as_text():
    said = render("{{ t|shown }}", t="<script>alert(1)</script>\u202e\0")
    assert said == "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E][U+0000]"


def test_code_in_our_own_sentences_stands_between_backticks_and_is_escaped():
    assert (
        render("{{ t|coded }}", t="run `<b>` now") == "run <code>&lt;b&gt;</code> now"
    )


def test_two_ages_on_a_page_are_counted_from_the_same_instant():
    said = render(
        "{% since t %} {% until u %}",
        t=NOW - timedelta(minutes=7, seconds=28),
        u=NOW + timedelta(seconds=23),
    )
    assert "7\u00a0min 28\u00a0s" in said
    assert "23\u00a0s" in said
