"""Pages of a long list: nothing lost, nothing doubled, nothing counted."""

from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from django.db import connection
from django.db.models import Q

from audit import keyset, sorting
from audit.keyset import Total
from audit.models import Change, Run
from tests import factories, screens

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)


def changes(count: int, *, at: datetime = NOW) -> None:
    rows = [
        Change(at=at, who="anna", origin="admin", subject=str(n), verb="changed")
        for n in range(count)
    ]
    Change.objects.bulk_create(rows)


def walk(
    direction: str, cursor: str = "", size: int = 3, by_key: bool = False
) -> list[list[str]]:
    pages = []
    while True:
        found = keyset.page(
            Change.objects.all(),
            time="at",
            size=size,
            by_key=by_key,
            **{direction: cursor},
        )
        pages.append([row.subject for row in found.rows])
        cursor = getattr(found, direction)
        if not cursor:
            return pages


def test_rows_of_the_same_instant_are_all_shown_once():
    changes(10)
    pages = walk("older")
    assert [len(page) for page in pages] == [3, 3, 3, 1]
    assert sorted(chain.from_iterable(pages)) == sorted(map(str, range(10)))


def test_by_key_rows_come_in_the_order_in_which_they_were_made():
    changes(4, at=NOW + timedelta(seconds=1))
    changes(3)
    pages = walk("older", by_key=True)
    assert [len(page) for page in pages] == [3, 3, 1]
    made = Change.objects.order_by("-pk").values_list("subject", flat=True)
    assert list(chain.from_iterable(pages)) == list(made)
    oldest = Change.objects.earliest("pk")
    back = walk("newer", f"{oldest.at.isoformat()}_{oldest.pk}", by_key=True)
    assert sorted(chain.from_iterable(back)) == sorted(made[:6])


def test_newer_leads_back_to_the_newest_page_and_that_one_is_whole():
    changes(10)
    third = keyset.page(Change.objects.all(), time="at", size=3, older=_nth(6))
    assert third.newer
    back = walk("newer", third.newer)
    assert [len(page) for page in back] == [3, 3]
    assert back[-1] == walk("older")[0]


def _nth(count: int) -> str:
    row = list(Change.objects.order_by("-at", "-pk"))[count - 1]
    return f"{row.at.isoformat()}_{row.pk}"


def test_rows_that_arrive_meanwhile_shift_nothing():
    changes(6)
    first = keyset.page(Change.objects.all(), time="at", size=3)
    changes(4, at=NOW + timedelta(seconds=1))
    second = keyset.page(Change.objects.all(), time="at", size=3, older=first.older)
    assert not {row.pk for row in first.rows} & {row.pk for row in second.rows}
    assert len(second.rows) == 3


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "_",
        "2026-11-29T14:30:00+00:00_",
        "2026-11-29T14:30:00_1",
        "2026-11-29T14:30:00+00:00_99999999999999999999",
        "\x00_1",
    ],
)
def test_a_cursor_that_cannot_be_read_is_the_newest_page(cursor: str):
    changes(2)
    for direction in ("older", "newer"):
        assert (
            len(
                keyset.page(Change.objects.all(), time="at", **{direction: cursor}).rows
            )
            == 2
        )


def test_runs_are_paged_by_their_uuid():
    acme = factories.tenant("acme")
    ids = {screens.run(acme, finished_at=NOW).id for _ in range(5)}
    first = keyset.page(Run.objects.all(), time="finished_at", size=3)
    second = keyset.page(
        Run.objects.all(), time="finished_at", size=3, older=first.older
    )
    assert {run.id for run in (*first.rows, *second.rows)} == ids


def test_a_count_stops_at_its_cap(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keyset, "CAP", 5)
    changes(9)
    total = keyset.count(Change.objects.all())
    assert total == Total(found=5, more=True)
    assert keyset.matches(total, "run") == "5+ runs match"
    assert keyset.matches(Total(found=1), "run") == "1 run matches"
    assert keyset.matches(Total(found=0), "run") == "0 runs match"
    assert keyset.matches(Total(found=0, more=True), "run") == ""
    assert "quickly" in keyset.matches(None, "run")


def test_a_sieve_lets_through_what_matches_and_nothing_else():
    changes(7)
    sieve = Q(subject__in=["1", "3", "5"])
    first = keyset.page(Change.objects.all(), time="at", size=2, sieve=sieve)
    assert first.searched_to is None
    second = keyset.page(
        Change.objects.all(), time="at", size=2, sieve=sieve, older=first.older
    )
    found = [row.subject for row in (*first.rows, *second.rows)]
    assert found == ["5", "3", "1"]
    assert second.older == ""
    assert keyset.count(Change.objects.all(), sieve=sieve) == Total(found=3)


@pytest.mark.parametrize("ascending", [False, True])
def test_a_search_whose_time_is_up_says_how_far_it_got_and_goes_on_from_there(
    ascending: bool,
):
    for number in range(9):
        changes(1, at=NOW + timedelta(minutes=number))
    rows, sieve = Change.objects.all(), Q(at__minute__in=[31, 37])
    found, cursor, stretches = [], "", 0
    while True:  # with no time at all each stretch ends at the first row that fails
        page = keyset.page(
            rows, time="at", sieve=sieve, sift_ms=-1000, ascending=ascending,
            **{"newer" if ascending else "older": cursor},
        )  # fmt: skip
        found += [row.at.minute for row in page.rows]
        cursor = page.newer if ascending else page.older
        stretches += 1
        if not cursor:
            break
        assert page.searched_to is not None
        assert page.searched_to.minute not in (31, 37)
    assert found == ([31, 37] if ascending else [37, 31])
    assert stretches == 8  # seven rows that fail, and the end


def test_a_count_whose_time_is_up_says_at_least(monkeypatch: pytest.MonkeyPatch):
    changes(5)
    monkeypatch.setattr(keyset, "COUNT_SIFT_MS", -1000)
    total = keyset.count(Change.objects.all(), sieve=Q(subject="4"))
    assert total is not None
    assert total.more


def test_oldest_first_reads_the_same_rows_the_other_way():
    changes(8)
    page = keyset.page(Change.objects.all(), time="at", size=3, ascending=True)
    seen = [[row.subject for row in page.rows]]
    assert page.older == ""
    while page.newer:
        page = keyset.page(
            Change.objects.all(), time="at", size=3, ascending=True, newer=page.newer
        )
        seen.append([row.subject for row in page.rows])
    assert list(chain.from_iterable(seen)) == [str(n) for n in range(8)]
    before = keyset.page(
        Change.objects.all(), time="at", size=3, ascending=True, older=page.older
    )
    assert [row.subject for row in before.rows] == seen[-2]


def test_lengths_order_a_list_too_and_no_cursor_of_times_fits_it():
    acme = factories.tenant("acme")
    for seconds in (3, 1, 2):
        screens.run(acme, started_at=NOW - timedelta(seconds=seconds), finished_at=NOW)
    rows, _ = sorting.within(Run.objects.all(), sorting.of("ran"))
    first = keyset.page(rows, time="ran", size=2)
    second = keyset.page(rows, time="ran", size=2, older=first.older)
    lengths = [row.ran.total_seconds() for row in (*first.rows, *second.rows)]  # type: ignore[attr-defined]
    assert lengths == [3, 2, 1]
    wrong = keyset.page(
        rows, time="ran", size=2, older=f"{NOW.isoformat()}_{first.rows[0].pk}"
    )
    assert wrong.rows == first.rows


@pytest.mark.postgresql
def test_a_search_that_no_index_serves_is_ended_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
):
    changes(1)
    slow = Change.objects.extra(where=["pg_sleep(5) IS NOT NULL"])
    monkeypatch.setattr(keyset, "PAGE_MS", 50)
    monkeypatch.setattr(keyset, "COUNT_MS", 50)
    assert keyset.page(slow, time="at").slow
    assert keyset.count(slow) is None
    # The connection is as it was: the next statement has its own time.
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)
