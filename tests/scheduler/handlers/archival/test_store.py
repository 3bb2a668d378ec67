from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage

from scheduler.handlers.archival import store
from scheduler.handlers.archival.exceptions import ArchiveError, NotAnArchive

pytestmark = pytest.mark.once


class Elsewhere(InMemoryStorage):
    """A storage that is no folder, as one for objects is."""


class Renaming(InMemoryStorage):
    """A storage that never takes a name as it is asked."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name + "-1"


@pytest.fixture
def elsewhere(settings: Any) -> None:
    use(settings, Elsewhere)


def use(settings: Any, storage: type) -> None:
    backend = {"BACKEND": f"{storage.__module__}.{storage.__qualname__}"}
    import sys

    sys.modules.setdefault(storage.__module__, sys.modules[__name__])
    settings.STORAGES = {**settings.STORAGES, "archive": backend}


def test_a_file_has_its_name_only_when_it_is_whole(root: Path) -> None:
    file = store.create("acme/events/tmp")
    file.write(b"half")
    assert [p.name for p in root.rglob("*") if p.is_file()] == ["tmp.tmp"]

    file.write(b" and whole")
    store.publish(file, tmp="acme/events/tmp", name="acme/events/file")

    assert [p.name for p in root.rglob("*") if p.is_file()] == ["file"]
    assert (root / "acme/events/file").read_bytes() == b"half and whole"


def test_a_discarded_file_leaves_nothing_even_when_it_cannot_be_closed(
    root: Path,
) -> None:
    file = store.create("acme/tmp")

    class Full(BytesIO):
        closes = 0

        def close(self) -> None:
            self.closes += 1
            if self.closes == 1:
                raise OSError("no space left on device")
            super().close()

    file.close()
    store.discard(Full(), tmp="acme/tmp")

    assert [p for p in root.rglob("*") if p.is_file()] == []


def test_a_name_never_leads_out_of_the_folder(root: Path) -> None:
    with pytest.raises(NotAnArchive):
        store.opened("../../etc/passwd")


def test_a_missing_file_is_said_with_the_folder(root: Path) -> None:
    with pytest.raises(NotAnArchive, match=f"no file acme/x in {root}"):
        store.opened("acme/x")


def test_all_files_below_a_folder_are_found_in_order(root: Path) -> None:
    for name in ("b/2", "b/1", "a/x/y", "top"):
        store.put(name, b"")

    assert list(store.everything()) == ["top", "a/x/y", "b/1", "b/2"]
    assert store.names("b") == ["b/1", "b/2"]
    assert store.names("nowhere") == []
    assert list(store.everything("nowhere")) == []


def test_a_person_may_name_a_file_by_any_path_that_leads_to_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a/x", b"")
    assert store.name_of("a/x") == "a/x"
    assert store.name_of(str(root / "a/x")) == "a/x"
    monkeypatch.chdir(root / "a")
    assert store.name_of("x") == "a/x"
    assert store.name_of("../../outside") == "../../outside"


def test_another_storage_saves_in_one_piece_and_replaces(elsewhere: None) -> None:
    for content in (b"first", b"second"):
        file = store.create("a/tmp")
        file.write(content)
        store.publish(file, tmp="a/tmp", name="a/file")

    with store.opened("a/file") as found:
        assert found.read() == b"second"
    assert list(store.everything()) == ["a/file"]
    assert store.place() == "Elsewhere"


def test_a_storage_that_changes_the_name_is_refused(settings: Any) -> None:
    use(settings, Renaming)
    file = store.create("a/tmp")

    with pytest.raises(ArchiveError, match=r"saved a/file as a/file-1 \(0 rows"):
        store.publish(file, tmp="a/tmp", name="a/file")

    assert list(store.everything()) == []
