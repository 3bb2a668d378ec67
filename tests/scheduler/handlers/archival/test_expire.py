from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.handlers.archival import apply_policies, store
from scheduler.handlers.archival.models import ArchiveFile

type Make = Callable[..., Any]


def archived(ctx: Make, event: Make, *, days_ago: float) -> ArchiveFile:
    event()
    apply_policies.run(ctx())
    file = ArchiveFile.objects.latest("id")
    file.created_at = ctx().now - timedelta(days=days_ago)
    file.save()
    return file


def test_files_past_their_time_are_removed_and_marked_others_stay(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy(archive_keep_days=10)
    old = archived(ctx, event, days_ago=0)
    young = archived(ctx, event, days_ago=9)
    ArchiveFile.objects.filter(pk=old.pk).update(
        created_at=ctx().now - timedelta(days=12)
    )

    outcome = apply_policies.run(ctx())

    old.refresh_from_db()
    young.refresh_from_db()
    assert old.deleted_at
    assert not young.deleted_at
    assert list(store.everything()) == [young.path]
    assert outcome.details["events"]["expired_files"] == 1  # type: ignore[index]


def test_without_archive_keep_days_files_stay_for_ever(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    file = archived(ctx, event, days_ago=36_000)

    apply_policies.run(ctx())

    assert list(store.everything()) == [file.path]


def test_a_crash_between_removing_and_marking_is_mended_by_the_next_run(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(archive_keep_days=10)
    file = archived(ctx, event, days_ago=12)
    store.remove(file.path)

    apply_policies.run(ctx())

    file.refresh_from_db()
    assert file.deleted_at


def test_a_file_that_cannot_be_removed_is_an_error_and_stays_registered(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(archive_keep_days=10)
    file = archived(ctx, event, days_ago=12)

    def refuse(name: str) -> None:
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(store, "remove", refuse)

    outcome = apply_policies.run(ctx())

    file.refresh_from_db()
    assert outcome.error == f"archive: permission denied: {file.path}"
    assert outcome.word == "failed"
    assert not file.deleted_at
