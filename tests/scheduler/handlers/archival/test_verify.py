import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit import clock
from scheduler.handlers.archival import apply_policies, store
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.verify import unregistered, verify

type Make = Callable[..., Any]


@pytest.fixture
def file(ctx: Make, policy: Make, event: Make, root: Path) -> ArchiveFile:
    policy()
    event()
    event()
    apply_policies.run(ctx())
    return ArchiveFile.objects.get()


def test_a_file_as_written_is_whole_and_that_is_remembered(file: ArchiveFile) -> None:
    now = clock.now()

    verdict = verify(file, now=now)

    file.refresh_from_db()
    assert (verdict.word, verdict.bad) == ("ok", False)
    assert file.verified_at == now


def test_a_missing_file_is_bad(file: ArchiveFile, root: Path) -> None:
    (root / file.path).unlink()

    verdict = verify(file, now=clock.now())

    file.refresh_from_db()
    assert (verdict.word, verdict.bad) == ("missing", True)
    assert str(root) in verdict.text
    assert file.verified_at is None


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "cut off": (lambda raw: raw[:-9], "unreadable"),
    "a bit flipped": (lambda raw: raw[:20] + bytes([raw[20] ^ 1]) + raw[21:], None),
    "packed again": (lambda raw: gzip.compress(gzip.decompress(raw)), "changed"),
    "other rows": (lambda raw: gzip.compress(b'{"id":1}\n'), "changed"),
    "padding, which gzip accepts": (lambda raw: raw + b"\x00" * 8, "changed"),
    "junk behind": (lambda raw: raw + b"junk", "unreadable"),
    "empty": (lambda raw: b"", "changed"),
    "no gzip": (lambda raw: b"no gzip at all", "unreadable"),
}


@pytest.mark.parametrize(("damage", "word"), DAMAGE.values(), ids=DAMAGE.keys())
def test_any_damage_is_found(
    damage: Callable[[bytes], bytes], word: str | None, file: ArchiveFile, root: Path
) -> None:
    path = root / file.path
    path.write_bytes(damage(path.read_bytes()))

    verdict = verify(file, now=clock.now())

    assert verdict.bad
    assert word is None or verdict.word == word
    assert "restore it from a backup" in verdict.text


def test_a_file_that_its_policy_removed_is_not_bad(file: ArchiveFile) -> None:
    store.remove(file.path)
    file.mark_deleted(at=clock.now())
    file.refresh_from_db()

    verdict = verify(file, now=clock.now())

    assert (verdict.word, verdict.bad) == ("removed", False)


def test_files_without_a_row_are_listed(file: ArchiveFile, root: Path) -> None:
    store.put("acme/events/2026/09/events-x-y.jsonl.gz", b"")
    store.put("acme/events/2026/09/events-3-3-bad.jsonl", b"")

    assert list(unregistered()) == ["acme/events/2026/09/events-x-y.jsonl.gz"]
