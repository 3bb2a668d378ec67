from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from audit import clock, ledger, queries, transcript
from audit.ledger import LateRecord
from audit.models import Line
from audit.rows import RunFilter
from tests.audit.conftest import recorded, run_record

pytestmark = pytest.mark.django_db

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
ALL = None
PAST = datetime(clock.now().year - 2, 5, 1, tzinfo=UTC)


@pytest.fixture
def now() -> Iterator[datetime]:
    """All clocks stand still."""
    moment = clock.now().replace(second=30, microsecond=0)
    with clock.at(moment):
        yield moment


# --- one run


def test_a_run_is_found_by_its_claim():
    record = recorded(details={"a": 1}, seen=3)
    found = queries.run(record.id)
    assert found is not None
    assert (found.id, found.details, found.seen) == (record.id, {"a": 1}, 3)
    assert found.ran == timedelta(seconds=1)


def test_a_run_of_another_tenant_is_none():
    record = recorded(tenant_id=7)
    assert queries.run(record.id, tenants=frozenset({8})) is None
    assert queries.run(record.id, tenants=frozenset({7, 8})) is not None


@pytest.mark.parametrize("id", [uuid4(), UUID(int=2**128 - 1), UUID(int=0)])
def test_ids_that_are_none_of_ours_find_nothing(id: UUID):
    assert queries.run(id) is None
    assert queries.lines(id, after=0, limit=10) == []
    assert queries.finish_ids([id]) == {}
    assert queries.late_of(id) == ()


def test_who_lost_the_reply_to_a_commit_finds_out_whose_runs_these_are():
    mine, other = uuid4(), uuid4()
    a, b, c = run_record(), run_record(), run_record()
    ledger.record([a], finish_id=mine)
    ledger.record([b], finish_id=other)
    assert queries.finish_ids([a.id, b.id, c.id]) == {a.id: mine, b.id: other}
    assert queries.finish_ids([]) == {}


def late(claim: UUID, **values: Any) -> None:
    known: dict[str, Any] = {"tenant_id": 1, "tenant": "acme", "handler": "tests.noop", "outcome": "succeeded", "finished_at": clock.now()}  # fmt: skip
    ledger.record_late(LateRecord(claim_id=claim, **{**known, **values}))


def test_late_results_are_found_by_their_claim():
    record = recorded(outcome="abandoned")
    late(record.id, seen=1)
    late(record.id, seen=2)
    assert [row.seen for row in queries.late_of(record.id)] == [1, 2]
    assert {id: row.seen for id, row in queries.lates([record.id, uuid4()]).items()} == {record.id: 2}  # fmt: skip


def test_all_attempts_of_an_item_in_their_order(now: datetime):
    outcomes = ["abandoned", "failed", "succeeded"]
    for number, outcome in enumerate(outcomes, 1):
        recorded(item_id=5, attempt=number, outcome=outcome, finished_at=now + number * MINUTE)  # fmt: skip
    recorded(item_id=6)
    assert [row.outcome for row in queries.attempts(5)] == outcomes
    assert queries.attempts(5, tenants=frozenset({9})) == ()
    assert queries.attempts(7) == ()


def test_a_first_attempt_that_succeeded_is_not_missing_before_a_second(now: datetime):
    """The index leaves it out."""
    for number in (1, 2, 3):
        recorded(item_id=5, attempt=number, enqueued_at=now - MINUTE, finished_at=now + number * MINUTE)  # fmt: skip
    assert [row.attempt for row in queries.attempts(5)] == [1, 2, 3]


def test_of_thousands_of_attempts_a_page_reads_those_around_its_own(now: datetime):
    """An item that goes on where it stopped is one item, however long that takes."""
    records = [
        run_record(item_id=5, attempt=number, enqueued_at=now, finished_at=now + number * SECOND)
        for number in range(1, 1_001)
    ]  # fmt: skip
    ledger.record(records, finish_id=uuid4())
    newest = [row.attempt for row in queries.attempts(5)]
    assert newest == list(range(951, 1_001))
    around = [row.attempt for row in queries.attempts(5, around=400)]
    assert around == list(range(376, 426))
    first = [row.attempt for row in queries.attempts(5, around=2)]
    assert first == list(range(1, 28))


def test_lines_of_a_long_run_are_read_from_where_the_reader_is():
    one = transcript.Transcript(claim_id=clock.uuid7())
    for number in range(1, 1_001):
        one.write(20, f"line {number}")
    transcript.store(one.close().rest)
    claim = Line.objects.values_list("claim_id", flat=True)[0]
    found = queries.lines(claim, after=990, limit=5)
    assert [(line.seq, line.text) for line in found] == [(n, f"line {n}") for n in range(991, 996)]  # fmt: skip
    assert queries.lines(claim, after=1_000, limit=5) == []


def test_lines_of_a_short_run_come_from_its_row():
    one = transcript.Transcript(claim_id=clock.uuid7())
    one.write(30, "first\nsecond\nthird")
    closed = one.close()
    record = recorded(id=clock.uuid7(), transcript=closed.short, line_count=3)
    found = queries.lines(record.id, after=1, limit=10)
    assert [(line.seq, line.level, line.text) for line in found] == [(2, 30, "second"), (3, 30, "third")]  # fmt: skip
    assert queries.lines(record.id, after=3, limit=10) == []


# --- lists


def ids(page: Any) -> list[UUID]:
    return [row.id for row in page.rows]


def test_pages_newest_first_lose_no_row_of_the_same_instant(now: datetime):
    records = [run_record(finished_at=now - MINUTE * (n // 5)) for n in range(23)]
    ledger.record(records, finish_id=uuid4())
    wanted = sorted(records, key=lambda r: (r.finished_at, r.id), reverse=True)
    seen: list[UUID] = []
    page = queries.runs(RunFilter(), tenants=ALL, limit=4)
    while True:
        seen += ids(page)
        if not page.older:
            break
        page = queries.runs(RunFilter(), tenants=ALL, limit=4, older=page.older)
    assert seen == [record.id for record in wanted]
    back = queries.runs(RunFilter(), tenants=ALL, limit=4, newer=page.newer)
    assert ids(back) == seen[-len(page.rows) - 4 : -len(page.rows)]


def test_a_place_that_cannot_be_read_is_the_newest_page():
    record = recorded()
    for broken in ("", "x", "2026_x", "\0", f"{clock.now()}_{2**70}"):
        assert ids(queries.runs(RunFilter(), tenants=ALL, older=broken)) == [record.id]


def test_filters_combine(now: datetime):
    wanted = recorded(handler="a.b", tenant_id=7, outcome="failed", error="Connection refused", tick_id=3, started_at=now - HOUR, node_id=UUID(int=1))  # fmt: skip
    recorded(handler="a.c", tenant_id=8, dedup_key="key-1")
    recorded(finished_at=now - 2 * HOUR)
    asked = [
        {"handlers": ("a.b", "x.y")},
        {"tenant_ids": frozenset({7})},
        {"outcomes": ("failed", "partial")},
        {"node_id": UUID(int=1)},
        {"tick_id": 3},
        {"text": "connection REFUSED"},
        {"ran_at_least": timedelta(minutes=10)},
        {"since": now - HOUR, "until": now + HOUR, "handlers": ("a.b",)},
    ]
    everything: dict[str, Any] = {}
    for one in asked:
        everything |= one
        for filters in (one, everything):
            asked_for = RunFilter(**filters)
            assert ids(queries.runs(asked_for, tenants=ALL)) == [wanted.id]
    assert ids(queries.runs(RunFilter(text="key-1"), tenants=frozenset({7}))) == []


def test_a_reader_sees_his_tenants_only():
    mine, other = recorded(tenant_id=7), recorded(tenant_id=8)
    assert ids(queries.runs(RunFilter(), tenants=frozenset({7}))) == [mine.id]
    assert ids(queries.runs(RunFilter(tenant_ids=frozenset({8})), tenants=frozenset({7}))) == []  # fmt: skip
    assert queries.runs(RunFilter(), tenants=frozenset()).rows == ()
    assert set(ids(queries.runs(RunFilter(), tenants=ALL))) == {mine.id, other.id}


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "a\0b"},
        {"text": "\udcd1"},
        {"handlers": ("\0",)},
        {"tick_id": 2**70},
        {"text": "%_\\"},
        {"text": "x" * 100_000},
    ],
)
def test_what_no_row_can_hold_finds_nothing_and_breaks_nothing(asked: Any):
    recorded(error="a b")
    assert queries.runs(RunFilter(**asked), tenants=ALL).rows == ()


def test_runs_that_succeeded_are_no_failures():
    ledger.record([run_record() for _ in range(25)], finish_id=uuid4())
    assert queries.failed_since(clock.now() - HOUR) == 0


# --- handlers, ticks, rates


def test_the_last_run_of_a_handler_for_a_tenant(
    now: datetime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queries, "LOOKED_BACK", 5)
    wanted = recorded(handler="rare", tenant_id=7, finished_at=now - HOUR)
    for n in range(10):  # it is not among the tenant's newest
        recorded(handler="common", tenant_id=7, finished_at=now - n * MINUTE)
    found = queries.last_run("rare", tenant_id=7)
    assert found is not None
    assert found.id == wanted.id
    for n in range(10):  # nor among the handler's
        recorded(handler="rare", tenant_id=8, finished_at=now - n * MINUTE)
    assert queries.last_run("rare", tenant_id=7) is None
    assert queries.last_run("never", tenant_id=7) is None


def test_the_median_of_the_newest_runs_of_each_handler(now: datetime):
    for seconds in (1, 2, 30):
        recorded(handler="a.b", started_at=now - timedelta(seconds=seconds), finished_at=now)  # fmt: skip
    recorded(handler="a.c", started_at=None, outcome="cancelled")
    for outcome in ("failed", "cancelled", "abandoned"):
        for _ in range(5):  # at once: no measure of how long it takes
            recorded(handler="a.b", outcome=outcome, started_at=now, finished_at=now)
    assert queries.medians(["a.b", "a.c", "a.d"]) == {"a.b": timedelta(seconds=2)}


def test_runs_per_minute_end_with_the_newest_whole_one(now: datetime):
    for ago, number in ((0, 9), (1, 3), (3, 2), (60, 7)):
        for n in range(number):
            recorded(finished_at=now - ago * MINUTE - timedelta(microseconds=n), tenant_id=n % 2)  # fmt: skip
    counts = queries.throughput(minutes=5, tenants=ALL, now=now)
    assert counts == [0, 0, 2, 0, 3]
    assert queries.throughput(minutes=5, tenants=frozenset({1}), now=now) == [0, 0, 1, 0, 1]  # fmt: skip


@pytest.mark.postgresql
def test_a_minute_of_very_many_runs_is_extrapolated(
    now: datetime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queries, "PER_MINUTE", 100)
    start = now.replace(second=0) - MINUTE
    every = timedelta(milliseconds=100)  # 600 a minute
    ledger.record([run_record(finished_at=start + n * every) for n in range(600)], finish_id=uuid4())  # fmt: skip
    assert queries.throughput(minutes=1, tenants=ALL, now=now)[0] == pytest.approx(600, rel=0.02)  # fmt: skip


def test_failures_are_grouped_by_what_reads_the_same(now: datetime):
    for n in range(3):
        recorded(handler="a.b", outcome="failed", error=f"port {n}000 refused by 0x7f{n}", tenant=f"t-{n}", tenant_id=n, finished_at=now - n * HOUR)  # fmt: skip
    recorded(handler="a.b", outcome="partial", error="port 1 refused by 0x1")
    recorded(handler="a.b", outcome="failed", error="another", tenant_id=1)
    recorded(handler="a.b", outcome="cancelled", error="port 1 refused")
    recorded(handler="a.b", outcome="failed", finished_at=now - 30 * HOUR)
    found = queries.failures_since(now - 24 * HOUR, now=now)
    assert [(row.outcome, row.runs) for row in found] == [("failed", 3), ("failed", 1), ("partial", 1)]  # fmt: skip
    first = found[0]
    assert first.error == "port 0000 refused by 0x7f0"
    assert first.tenants == ("t-0", "t-1", "t-2")
    assert first.by_hour == (*(0,) * 21, 1, 1, 1)
    assert (first.last_seen, first.more) == (now, False)
    mine = queries.failures_since(now - 24 * HOUR, tenants=frozenset({1}), now=now)
    assert sorted(row.runs for row in mine) == [1, 1, 1]
    assert queries.failed_since(now - 24 * HOUR) == 4
    assert queries.failed_since(now - 24 * HOUR, tenants=frozenset({2})) == 1


def test_what_became_of_each_tick(now: datetime):
    for tick, outcome in ((1, "succeeded"), (1, "failed"), (2, "succeeded")):
        recorded(tick_id=tick, outcome=outcome)
    found = queries.counts_by_tick([1, 2, 3], since=now - HOUR)
    assert found == {1: {"succeeded": 1, "failed": 1}, 2: {"succeeded": 1}, 3: {}}


# --- nodes and changes


def elected(number: int, at: datetime, type: str = "elected", **values: Any) -> None:
    with clock.at(at):
        ledger.node_event(node_id=UUID(int=number), node=f"host, {number}", kind="server", type=type, **values)  # fmt: skip


def test_terms_end_with_what_ended_them(now: datetime):
    at = now - 10 * HOUR
    elected(1, at, term=1)  # before the asked time, and in force then
    elected(1, at + 2 * HOUR, "resigned", term=1)
    elected(2, at + 3 * HOUR, term=2)
    elected(2, at + 4 * HOUR, "silent")
    elected(3, at + 5 * HOUR, term=3)
    elected(9, at + 6 * HOUR, "stopped")  # somebody else
    found = queries.terms(since=at + HOUR)
    assert [(row.term, row.node, row.began_at - at, row.ended_at and row.ended_at - at) for row in found] == [
        (1, "host, 1", timedelta(), 2 * HOUR),
        (2, "host, 2", 3 * HOUR, 4 * HOUR),
        (3, "host, 3", 5 * HOUR, None),
    ]  # fmt: skip
    assert queries.terms(since=now) == found[-1:]


def test_execution_logs_are_read_page_by_page(now: datetime):
    for n in range(5):
        elected(n % 2, now - n * MINUTE, "note", text=str(n))
    first = queries.node_events(limit=2)
    assert [row.text for row in first] == ["0", "1"]
    following = queries.node_events(before=first[-1].cursor, limit=2)
    assert [row.text for row in following] == ["2", "3"]
    of_one = queries.node_events(node_id=UUID(int=1), limit=9)
    assert [row.text for row in of_one] == ["1", "3"]
    assert len(queries.node_events(before="\0", limit=9)) == 5


def test_changes_are_scoped_and_newest_first(now: datetime):
    for n in range(4):
        with clock.at(now - n * HOUR):
            ledger.change(who="ada", origin="admin", subject=f"s{n % 2}", verb="changed", new=n, tenant_id=n or None)  # fmt: skip
    assert [row.new for row in queries.changes(limit=9)] == [0, 1, 2, 3]
    assert [row.new for row in queries.changes(limit=2)] == [0, 1]
    assert [row.new for row in queries.changes(since=now - HOUR, limit=9)] == [0, 1]
    mine = queries.changes(tenants=frozenset({1, 3}), limit=9)
    assert [row.new for row in mine] == [1, 3]
    assert [row.new for row in queries.changes_of("s1", limit=9)] == [1, 3]
    assert queries.changes_of("\0", limit=9) == []
