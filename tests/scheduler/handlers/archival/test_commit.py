from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.models import Event
from scheduler.handlers.archival import store
from scheduler.handlers.archival.commit import commit, remove_unfinished
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.select import Selected, selected
from scheduler.handlers.archival.write import Written, write

type Make = Callable[..., Any]


@pytest.fixture
def written(
    ctx: Make, policy: Make, event: Make, root: Path
) -> tuple[Selected, Written]:
    """A file of one event that nobody has registered yet."""
    policy()
    event()
    attempt = ctx()
    [chosen] = selected(
        tenant_id=attempt.tenant_id, tenant=attempt.tenant, now=attempt.now
    )
    [file] = write(chosen, ctx=attempt, spent=lambda: False)
    return chosen, file


def test_the_file_is_registered_and_its_rows_are_gone_together(
    written: tuple[Selected, Written],
) -> None:
    commit(*written)

    assert ArchiveFile.objects.get().path == written[1].path
    assert not Event.objects.exists()


def test_of_two_attempts_on_the_same_rows_the_second_is_refused_and_keeps_the_file(
    written: tuple[Selected, Written], root: Path
) -> None:
    commit(*written)

    with pytest.raises(ArchiveError, match=r"another attempt .* \(0 rows deleted\)"):
        commit(*written)

    assert ArchiveFile.objects.count() == 1
    assert (root / written[1].path).exists()


def test_rows_that_are_gone_already_undo_the_registration_and_the_file(
    written: tuple[Selected, Written], root: Path
) -> None:
    Event.objects.all().delete()

    with pytest.raises(
        ArchiveError, match=r"1 rows of .* changed while it was written"
    ):
        commit(*written)

    assert not ArchiveFile.objects.exists()
    assert not (root / written[1].path).exists()


def test_only_unfinished_files_of_this_type_are_removed(
    written: tuple[Selected, Written], root: Path
) -> None:
    store.put("acme/events/2026/08/events-1-x.tmp", b"")
    store.put("acme/runs/2026/08/runs-1-x.tmp", b"")
    store.put("acme/events/2026/08/events-1-1-bad.jsonl", b"")

    remove_unfinished(written[0])

    assert sorted(store.everything()) == [
        "acme/events/2026/08/events-1-1-bad.jsonl",
        written[1].path,
        "acme/runs/2026/08/runs-1-x.tmp",
    ]
