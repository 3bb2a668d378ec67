"""What a filter can be, as people write it."""

from datetime import timedelta

import pytest

from audit import fields

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("50ms", 0.05),
        ("50 ms", 0.05),
        ("2.5 s", 2.5),
        ("10 min", 600),
        ("10m", 600),
        ("24h", 86_400),
        ("7 D", 604_800),
    ],
)
def test_a_length_of_time_is_read_as_people_write_it(text: str, seconds: float):
    assert fields.length(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "10",
        "10 weeks",
        "-5 s",
        "1e9 s",
        "\u0665 s",
        "5 s 3",
        "9999999999 d",
    ],
)
def test_what_is_no_length_of_time_is_refused(text: str):
    with pytest.raises(ValueError, match="no length of time"):
        fields.length(text)
