"""A batch on its way; the stories end to end stand in test_deliver."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from audit import clock
from scheduler.handlers.notifications import claim, send, sql
from scheduler.handlers.notifications.channels import border, smtp
from scheduler.handlers.notifications.models import Channel, Notification
from scheduler.timetable import TIMETABLE
from tests import factories
from tests.scheduler.handlers.notifications.arrange import context, due
from workqueue.exceptions import ClaimLost

pytestmark = pytest.mark.django_db


class Module:
    """A channel's module that does what the test says."""

    def __init__(self, deliver: Callable[[border.Message], str]) -> None:
        self.deliver = deliver

    @contextmanager
    def opened(self, endpoint: border.Endpoint) -> Iterator[border.Deliver]:
        yield self.deliver


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> Channel:
    monkeypatch.setitem(border.MODULES, "fake", "fake")
    return Channel.objects.create(tenant=factories.tenant(), name="ops", kind="fake")


def sending(
    monkeypatch: pytest.MonkeyPatch, deliver: Callable[[border.Message], str]
) -> None:
    monkeypatch.setattr(border, "import_module", lambda _: Module(deliver))


def test_rows_that_another_run_took_meanwhile_are_not_sent(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def deliver(message: border.Message) -> str:
        sent.append(message.recipient)
        Notification.objects.filter(recipient="c").update(claim_id=clock.uuid7())
        return "id"

    sending(monkeypatch, deliver)
    for name in "abc":
        due(channel, name)
    ctx = context(channel.tenant)
    batch = claim.take(channel, claim_id=ctx.claim_id, limit=10)

    assert send.send(ctx, channel=channel, batch=batch)

    assert sent == ["a", "b"]
    assert (ctx.tally.seen, ctx.tally.changed, ctx.tally.skipped) == (3, 2, 1)


def test_a_run_has_time_for_the_message_that_it_starts_last() -> None:
    [row] = [row for row in TIMETABLE if row.key == "notifications.deliver"]
    slowest = smtp.TALK + border.PATIENCE.total_seconds()
    assert sql.HELD.total_seconds() > slowest
    assert send.END_BEFORE.total_seconds() >= sql.HELD.total_seconds() + smtp.OPENING
    assert row.time_limit > send.END_BEFORE + timedelta(minutes=4)


def test_a_lost_claim_of_the_run_ends_it_at_once(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def deliver(message: border.Message) -> str:
        calls.append(message.recipient)
        raise ClaimLost

    sending(monkeypatch, deliver)
    due(channel)
    due(channel)
    ctx = context(channel.tenant)
    batch = claim.take(channel, claim_id=ctx.claim_id, limit=10)

    with pytest.raises(ClaimLost):
        send.send(ctx, channel=channel, batch=batch)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("asked", "seconds"), [(0, 1), (-5, 1), (30, 30), (86_400, 3_600), (10**9, 3_600)]
)
def test_a_pause_is_bounded_whatever_the_other_side_asks(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, asked: int, seconds: int
) -> None:
    def deliver(message: border.Message) -> str:
        raise border.RateLimited(pause=timedelta(seconds=asked))

    sending(monkeypatch, deliver)
    due(channel)
    ctx = context(channel.tenant)
    before = clock.now()
    send.send(
        ctx, channel=channel, batch=claim.take(channel, claim_id=ctx.claim_id, limit=10)
    )

    channel.refresh_from_db()
    assert channel.paused_until is not None
    assert abs((channel.paused_until - before).total_seconds() - seconds) < 5


def test_a_result_that_comes_after_the_claim_was_taken_is_said_and_not_written(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = clock.uuid7()

    def deliver(message: border.Message) -> str:
        Notification.objects.update(claim_id=other)
        return "id"

    sending(monkeypatch, deliver)
    due(channel)
    ctx = context(channel.tenant)
    send.send(
        ctx, channel=channel, batch=claim.take(channel, claim_id=ctx.claim_id, limit=10)
    )

    row = Notification.objects.get()
    assert (row.state, row.claim_id) == ("sending", other)
    assert "it may arrive twice" in caplog.text
