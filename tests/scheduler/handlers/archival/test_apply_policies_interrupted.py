"""archival.apply_policies on a full disk, killed at each step, and out of time: nothing is lost."""

import errno
import gzip
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from audit.models import Event, Run
from scheduler.handlers.archival import apply_policies, commit, store, write
from scheduler.handlers.archival.models import ArchiveFile
from tests.scheduler.handlers.archival.reading import files, rows_of

type Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("root")


# --- a full disk, and deaths at each step


class Died(BaseException):
    """The process is gone: nothing after this line was executed."""


def test_a_full_disk_deletes_nothing_and_leaves_no_tmp(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event(data={"text": os.urandom(200_000).hex()})
    # The kernel's own answer to every write: no space left on device.
    monkeypatch.setattr(
        store, "_open_new", lambda path: os.open("/dev/full", os.O_WRONLY)
    )

    outcome = apply_policies.run(ctx())

    assert outcome.word == "failed"
    assert outcome.error.startswith(
        "archive: no space left on device while writing acme/events/2026/09/events-"
    )
    assert outcome.error.endswith("(0 rows deleted)")
    assert Event.objects.count() == 1
    assert files(root) == []
    assert not ArchiveFile.objects.exists()


def test_a_disk_that_is_full_at_the_end_of_the_file_leaves_no_tmp(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.os, "fsync", full)

    outcome = apply_policies.run(ctx())

    assert outcome.error.startswith("archive: no space left on device while writing")
    assert (Event.objects.count(), files(root)) == (1, [])


def test_a_full_disk_for_one_type_does_not_stop_the_next(
    ctx: Make, policy: Make, event: Make, ran: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy("runs")
    policy("events", action="delete")
    ran()
    event()
    monkeypatch.setattr(
        store, "_open_new", lambda path: os.open("/dev/full", os.O_WRONLY)
    )

    outcome = apply_policies.run(ctx())

    assert (Run.objects.count(), Event.objects.count()) == (1, 0)
    assert outcome.word == "partial"


@pytest.mark.parametrize(
    "step",
    [
        "while the file is written",
        "before the file has its name",
        "when the file has its name",
        "inside the transaction",
    ],
)
def test_a_death_at_any_step_loses_nothing_and_the_next_run_ends_the_work(
    step: str,
    ctx: Make,
    policy: Make,
    event: Make,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy()
    rows = [event(), event()]

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        if step == "while the file is written":
            patch.setattr(write._Draft, "finish", die)
            patch.setattr(store, "discard", lambda file, tmp: file.close())
        elif step == "before the file has its name":
            patch.setattr(store.os, "fsync", die)
            patch.setattr(store, "discard", lambda file, tmp: file.close())
        elif step == "when the file has its name":
            patch.setattr(write, "measure", die)
        else:
            patch.setattr(Event.objects.all().__class__, "delete", die)
        with pytest.raises(Died):
            apply_policies.run(ctx())
    assert Event.objects.count() == 2
    assert not ArchiveFile.objects.exists()

    apply_policies.run(ctx())

    name = f"acme/events/2026/09/events-{rows[0].pk}-{rows[1].pk}.jsonl.gz"
    assert files(root) == [name]
    assert [row["id"] for row in rows_of(root / name)] == [row.pk for row in rows]
    assert ArchiveFile.objects.get().path == name
    assert not Event.objects.exists()


def test_a_file_that_reads_back_differently_deletes_nothing(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event()
    publish = store.publish

    def flip(*args: Any, name: str, **values: Any) -> None:
        publish(*args, name=name, **values)
        (root / name).write_bytes(gzip.compress(b'{"id":0}\n'))

    monkeypatch.setattr(store, "publish", flip)

    outcome = apply_policies.run(ctx())

    assert "read back and is not what was written (0 rows deleted)" in outcome.error
    assert (Event.objects.count(), files(root)) == (1, [])


def test_what_an_earlier_attempt_left_is_removed_once_a_longer_file_holds_it(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event(days=65)

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(apply_policies, "commit", die)
        with pytest.raises(Died):
            apply_policies.run(ctx())
    left = files(root)
    event(days=64.9)

    apply_policies.run(ctx())

    assert len(left) == 1
    assert files(root) == [ArchiveFile.objects.get().path]
    assert files(root) != left


def test_a_row_that_changed_meanwhile_keeps_all_of_its_file_in_the_table(
    ctx: Make, policy: Make, event: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy()
    event()
    moved = event()
    register = commit._register

    def move(*args: Any) -> None:
        register(*args)
        Event.objects.filter(pk=moved.pk).update(occurred_at=ctx().now)

    monkeypatch.setattr(commit, "_register", move)

    outcome = apply_policies.run(ctx())

    assert "changed while it was written" in outcome.error
    assert Event.objects.count() == 2
    assert (files(root), ArchiveFile.objects.count()) == ([], 0)


def test_a_registered_file_is_never_written_over(
    ctx: Make, policy: Make, event: Make, root: Path
) -> None:
    policy()
    kept = Event.objects.filter(pk=event().pk).values().get()
    apply_policies.run(ctx())
    before = {name: (root / name).read_bytes() for name in files(root)}
    Event.objects.create(**kept)  # by SQL, not by restore

    outcome = apply_policies.run(ctx())

    assert "is in the table although" in outcome.error
    assert {name: (root / name).read_bytes() for name in files(root)} == before
    assert Event.objects.count() == 1


# --- time


def test_a_run_whose_time_is_over_ends_its_file_and_asks_for_the_rest(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    for _ in range(3):
        event()
    looks = iter([False, False, False, True])

    first = apply_policies.run(ctx(stopping=lambda: next(looks, True)))

    assert first.again_in == timedelta()
    assert 0 < Event.objects.count() < 3

    second = apply_policies.run(ctx())

    assert (second.again_in, Event.objects.count()) == (None, 0)
    assert sum(file.rows for file in ArchiveFile.objects.all()) == 3


def test_the_time_of_one_run_is_archive_max_seconds(
    ctx: Make, policy: Make, event: Make, settings: Any
) -> None:
    settings.ARCHIVE_MAX_SECONDS = 0
    policy()
    event()

    outcome = apply_policies.run(ctx())

    assert (outcome.again_in, Event.objects.count()) == (timedelta(), 1)
