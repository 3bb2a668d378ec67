"""The lines of a transcript as HTML: every one with its number, its time and its own words."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from audit import clock, lines
from audit.transcript import LineRow
from audit.window import Shown, Window
from tests.screens import HOSTILE, LIVE

pytestmark = pytest.mark.once
AT = datetime(2026, 11, 29, 22, 31, 58, 204567, tzinfo=UTC)


def window(*shown: Shown) -> Window:
    return Window(lines=shown, above=0, below=False, first=1, last=1)


def line(number: int, text: str, *, tone: str = "", gap: int = 0) -> Shown:
    return Shown(LineRow(clock.uuid7(), number, AT, 20, text), gap, tone, "INFO")


def test_a_line_is_a_link_to_itself_with_its_exact_time():
    with timezone.override("Europe/Berlin"):
        html = lines.html(window(line(120, "a & b")))
    assert html == (
        '<div id="L120"><a href="#L120">120</a>'
        '<time datetime="2026-11-29T22:31:58Z" title="2026-11-29 22:31:58 UTC">23:31:58.204</time>'
        "<em>INFO</em><span>a &amp; b</span></div>\n"
    )


def test_its_level_is_seen_and_so_is_the_line_that_was_linked():
    html = lines.html(
        window(line(1, "x", tone="e"), line(2, "y", tone="w")), selected=2
    )
    assert '<div id="L1" class="e">' in html
    assert '<div id="L2" class="w sel">' in html


def test_what_the_limit_left_out_is_said_where_it_is_missing():
    html = lines.html(window(line(1, "x"), line(1205, "y", gap=1203)))
    assert (
        html.index("L1")
        < html.index("1,203\u00a0lines left out here")
        < html.index("L1205")
    )


def test_nothing_in_a_line_is_markup():
    html = lines.html(window(line(1, HOSTILE), line(2, f"\x1b[31m{HOSTILE}")))
    assert not [mark for mark in LIVE if mark in html]
