"""Terminal output as text: its colours are kept, everything else of it is not."""

import pytest

from audit.ansi import marked_up
from tests.screens import HOSTILE, LIVE

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain & <b>", "plain &amp; &lt;b&gt;"),
        ("\x1b[31mred\x1b[0m.", '<b class="a1">red</b>.'),
        ("\x1b[91;1mred\x1b[22m on\x1b[39m.", '<b class="a1 ab">red</b><b class="a1"> on</b>.'),
        ("\x1b[32;4mg\x1b[m.", '<b class="a2 au">g</b>.'),
        # One of 256 colours, and any colour: the numbers that follow are no codes.
        ("\x1b[38;5;31mx", "x"),
        ("\x1b[38;2;1;31;4mx", "x"),
        ("\x1b[48;5;1;33mx", '<b class="a3">x</b>'),
        # Cursor, title and other sequences say nothing here.
        ("a\x1b[2K\x1b[10;20Hb\x1b]0;title\x07c\x1bMd", "abcd"),
        ("\x1b[99999999999999999999mx", "x"),
        # Half a sequence, and an escape alone, are shown.
        ("a\x1b[31", "a[U+001B][31"),
        ("a\x1b", "a[U+001B]"),
        ("\x1b[31m\u202ex", '<b class="a1">[U+202E]x</b>'),
    ],
)  # fmt: skip
def test_what_is_shown_of_it(text: str, html: str):
    assert marked_up(text, limit=1000) == html


def test_nothing_in_it_is_markup():
    html = marked_up(f"\x1b[31m{HOSTILE}\x1b[0m{HOSTILE}", limit=1000)
    assert not [mark for mark in LIVE if mark in html]


def test_its_length_is_bounded_and_said():
    html = marked_up("\x1b[31m" + "x" * 5000, limit=100)
    assert html.endswith("… (5,005 characters)")
    assert len(html) < 200


def test_a_line_of_nothing_but_codes_costs_no_time():
    assert marked_up("\x1b[1;31m" * 9000, limit=70_000) == ""
    assert "[U+001B]" in marked_up("\x1b[" * 30_000, limit=70_000)
    assert "[U+001B]" in marked_up("\x1b]" * 30_000, limit=70_000)
