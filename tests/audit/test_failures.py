from datetime import timedelta
from uuid import uuid4

import pytest

from audit import clock, failures, ledger
from tests.audit.conftest import recorded, run_record

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def test_errors_that_differ_in_numbers_and_ids_are_one_group():
    now = clock.now()
    for error in (
        "row 17 of 9f86d081-884c-4d65-9aea-d1f2a1b0c3d4 at 0x7f00: refused",
        "row 4 of 2c26b46b-68ff-4c68-aff9-9b453c1d3041 at 0x10: refused",
    ):
        recorded(outcome="failed", error=error, finished_at=now)
    recorded(outcome="failed", error="row seventeen: refused", finished_at=now)
    found = failures.grouped(now - DAY, tenants=None, now=now)
    assert [row.runs for row in found] == [2, 1]


def test_groups_of_more_failures_than_are_read_say_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(failures, "READ", 10)
    now = clock.now()
    ledger.record(
        [
            run_record(
                outcome="failed", error="x", finished_at=now - timedelta(seconds=n)
            )
            for n in range(31)
        ],
        finish_id=uuid4(),
    )
    (found,) = failures.grouped(now - DAY, tenants=None, now=now)
    assert found.more
    assert 10 <= found.runs <= 30
    assert found.last_seen == now


def test_a_quiet_day_has_none():
    recorded()
    assert failures.grouped(clock.now() - DAY, tenants=None, now=clock.now()) == []
    assert (
        failures.grouped(clock.now() - DAY, tenants=frozenset(), now=clock.now()) == []
    )


@pytest.mark.parametrize(
    ("error", "searched"),
    [
        ("mail.internal:587 refused item 12", "mail.internal:"),
        ("550 no mailbox nobody@acme.example", "no mailbox"),
        ("connection refused\nsecond line is longer by far", "connection refused"),
        ("0x1f 12 abc", ""),
        ("", ""),
    ],
)
def test_a_group_is_searched_for_by_what_all_its_errors_share(error, searched):
    assert failures.literal(error) == searched
