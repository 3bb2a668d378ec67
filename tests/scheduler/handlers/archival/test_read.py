from datetime import UTC, datetime
from hashlib import sha256

import pytest

from scheduler.handlers.archival.read import line

WORKED_EXAMPLE = "d8c51c8f60065b1b566d2886ed5993f57b756ebfb6cbf0dea8f8c6df60c8b5f7"


def test_the_worked_example_has_211_bytes_and_its_digest() -> None:
    rows = [
        {
            "id": 1,
            "tenant": "acme",
            "created_at": datetime(2026, 1, 1, tzinfo=UTC),
            "type": "scan.completed",
            "payload": {"n": 1},
        },
        {
            "id": 2,
            "tenant": "acme",
            "created_at": datetime(2026, 1, 2, tzinfo=UTC),
            "type": "scan.failed",
            "payload": {"e": "Zürich"},
        },
    ]

    raw = b"".join(map(line, rows))

    assert len(raw) == 211
    assert sha256(raw).hexdigest() == WORKED_EXAMPLE


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", b"x", object()]
)
def test_what_json_cannot_say_is_refused_not_bent(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        line({"id": 1, "value": value})
