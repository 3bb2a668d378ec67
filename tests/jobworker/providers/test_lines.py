"""From bytes to lines."""

import pytest

from audit import clock
from jobworker.providers import lines
from jobworker.providers.lines import Lines

pytestmark = pytest.mark.once


def read(*chunks: bytes) -> list[str]:
    found: list[str] = []
    stream = Lines(found.append)
    for chunk in chunks:
        stream.feed(chunk)
    stream.end()
    return found


def test_lines_are_the_same_however_they_are_cut() -> None:
    whole = "eins\nzwei ü\r\n\ndrei".encode()
    expected = ["eins", "zwei ü", "", "drei"]

    assert read(whole) == expected
    assert read(*(whole[i : i + 1] for i in range(len(whole)))) == expected


def test_of_a_line_drawn_again_and_again_the_last_state_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "steady", lambda: 0.5)

    assert read(b"10%\r20%\r", b"100%\r\ndone\r\r\n") == ["100%", "done"]


def test_a_line_drawn_for_long_is_seen_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(clock, "steady", lambda: now[0])
    found: list[str] = []
    stream = Lines(found.append)

    for tenth in range(25):
        now[0] = tenth / 10
        stream.feed(b"%d\r" % tenth)
    stream.end()

    assert found == ["9", "19", "24"]


def test_a_long_line_is_cut_and_the_rest_counted() -> None:
    found: list[str] = []
    stream = Lines(found.append)
    for _ in range(20):
        stream.feed(b"x" * 1_000_000)
        assert len(stream._kept) <= lines.LONGEST
    stream.feed(b"\nnext\n")

    assert found[0].startswith("xxx")
    dropped = 20_000_000 - lines.LONGEST
    assert found[0].endswith(f" … {dropped:,} more bytes of this line left out")
    assert found[1] == "next"


def test_what_is_no_text_is_passed_on_visibly() -> None:
    assert read(b"a\xff\xfeb\n", b"nul\x00\n", b"\x1b[31mred\x1b[0m\n") == [
        "a��b",
        "nul\0",
        "\x1b[31mred\x1b[0m",
    ]
