import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.handlers.archival.select import selected
from scheduler.handlers.archival.write import folder, write

type Make = Callable[..., Any]
AT = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)


def test_files_lie_by_tenant_type_year_and_month_of_utc() -> None:
    local = datetime.fromisoformat("2026-01-01T00:30:00+01:00")

    found = folder(tenant="acme", tenant_id=7, record_type="runs", at=local)

    assert found == "acme/runs/2025/12"


@pytest.mark.parametrize("slug", ["../evil", "a/b", "", ".", "a\x00b", "ü"])
def test_a_slug_that_came_in_by_sql_does_not_lead_out_of_its_place(slug: str) -> None:
    found = folder(tenant=slug, tenant_id=7, record_type="runs", at=AT)

    assert found == "tenant-7/runs/2026/01"


def test_what_was_written_is_what_gzip_reads(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    for number in range(1200):  # more than one chunk
        event(subject=f"scan:{number}")
    attempt = ctx()
    [chosen] = selected(
        tenant_id=attempt.tenant_id, tenant=attempt.tenant, now=attempt.now
    )

    [written] = write(chosen, ctx=attempt, spent=lambda: False)

    raw = gzip.decompress((root / written.path).read_bytes())
    assert raw.count(b"\n") == written.measured.rows == len(written.places) == 1200
    assert attempt.tally.seen == 1200


def test_a_writer_that_is_given_up_leaves_nothing(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.handlers.archival.write.MAX_ROWS", 1)
    policy()
    event()
    event()
    attempt = ctx()
    [chosen] = selected(
        tenant_id=attempt.tenant_id, tenant=attempt.tenant, now=attempt.now
    )

    files = write(chosen, ctx=attempt, spent=lambda: False)
    first = next(files)
    files.close()

    found = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    assert found == [first.path]
