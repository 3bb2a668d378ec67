"""What a row of the list says."""

from datetime import timedelta
from typing import Any

import pytest

from audit import clock
from scheduler.handlers.notifications.models import Channel, Notification
from scheduler.handlers.notifications.tables import NotificationTable, state
from workqueue.models import Tenant

pytestmark = pytest.mark.once

NOW = clock.now()


def row(**values: Any) -> Notification:
    channel = Channel(
        pk=1, name="ops", kind="email", is_enabled=values.pop("is_enabled", True)
    )
    given = {
        "pk": 5,
        "tenant": Tenant(pk=1, slug="acme"),
        "channel": channel,
        "recipient": "a@example.com",
        "created_at": NOW,
    }
    return Notification(**{**given, **values})


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"state": "pending"}, "Waiting"),
        ({"state": "pending", "attempts": 2}, "Waiting to retry"),
        ({"state": "sending", "attempts": 1}, "Sending"),
        ({"state": "sent", "attempts": 1}, "Sent"),
        ({"state": "failed", "attempts": 8}, "Failed"),
        ({"state": "suppressed"}, "Suppressed"),
    ],
)
def test_a_state_is_icon_and_word(values: dict[str, Any], word: str) -> None:
    said = state(row(**values))
    assert said.endswith(f"</svg>{word}</span>")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"next_attempt_at": NOW - timedelta(seconds=5)}, "next with the next run"),
        (
            {"next_attempt_at": NOW + timedelta(seconds=42), "last_error": "451 later"},
            "451 later",
        ),
        ({"next_attempt_at": NOW, "is_enabled": False}, "when its channel is enabled"),
        ({"state": "sent", "sent_at": NOW - timedelta(seconds=7)}, "sent <time"),
        ({"state": "failed", "last_error": "<b>550"}, "&lt;b&gt;550"),
        ({"state": "suppressed"}, "\u2013"),
    ],
)
def test_the_result_says_what_came_and_what_comes(
    values: dict[str, Any], said: str
) -> None:
    assert said in NotificationTable([], now=NOW).render_result(row(**values))


def test_what_would_turn_its_neighbours_round_is_visible() -> None:
    table = NotificationTable([], now=NOW)
    one = row(subject="a\u202eb", recipient="a\u202eb")
    assert "[U+202E]" in table.render_subject(one)
    assert "[U+202E]" in table.render_recipient(one)
