"""store: where the files lie: settings.STORAGES["archive"], a folder by default.

In a folder a file appears under its name only when it is whole and on the disk:
written as .tmp, synced, renamed. Other storages save an object in one piece.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages

from scheduler.handlers.archival.exceptions import ArchiveError, NotAnArchive

TMP = ".tmp"
PRIVATE_FILE = 0o600  # every tenant's history lies here
PRIVATE_FOLDER = 0o700


def create(name: str) -> IO[bytes]:
    """A new file to write to, not yet under its name."""
    if (folder := _folder()) is None:
        return cast(IO[bytes], tempfile.TemporaryFile())
    path = Path(folder.path(name + TMP))
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    return os.fdopen(_open_new(path), "wb")


def publish(file: IO[bytes], *, tmp: str, name: str) -> None:
    """Give the written file its name, replacing what an interrupted run left there."""
    folder = _folder()
    if folder is None:
        _save(file, name=name)
        return
    file.flush()
    os.fsync(file.fileno())
    file.close()
    target = Path(folder.path(name))
    Path(folder.path(tmp + TMP)).rename(target)
    _sync_folder(target.parent)


def discard(file: IO[bytes], *, tmp: str) -> None:
    """Forget a file that has no name yet. On a full disk, closing it fails as well."""
    try:
        file.close()
    except OSError:
        file.close()  # the second time it only lets go of the descriptor
    if (folder := _folder()) is not None:
        Path(folder.path(tmp + TMP)).unlink(missing_ok=True)


def put(name: str, content: bytes) -> None:
    """Write a small file in one piece."""
    file = create(name)
    try:
        file.write(content)
        publish(file, tmp=name, name=name)
    except BaseException:
        discard(file, tmp=name)
        raise


def opened(name: str) -> IO[bytes]:
    """A file, to be read and closed by the caller. Raises NotAnArchive."""
    try:
        return cast(IO[bytes], _storage().open(name))
    except (FileNotFoundError, IsADirectoryError, SuspiciousFileOperation):
        raise NotAnArchive(f"archive: there is no file {name} in {place()}") from None


def remove(name: str) -> None:
    """Remove a file; nothing happens where there is none."""
    _storage().delete(name)


def names(folder: str) -> list[str]:
    """The files of one folder, without those below it."""
    try:
        found = _storage().listdir(folder)[1]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(f"{folder}/{name}" for name in found)


def everything(folder: str = "") -> Iterator[str]:
    """All files below a folder."""
    try:
        folders, files = _storage().listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    prefix = f"{folder}/" if folder else ""
    yield from sorted(prefix + name for name in files)
    for below in sorted(folders):
        yield from everything(prefix + below)


def place() -> str:
    """Where it is, for people: the folder's path, or what kind of storage it is."""
    folder = _folder()
    return str(folder.location) if folder else type(_storage()).__name__


def name_of(text: str) -> str:
    """The name of a file that a person gave as a path."""
    if (folder := _folder()) is None:
        return text
    root = Path(folder.location).resolve()
    for path in (Path(text), root / text):
        if path.resolve().is_relative_to(root) and path.is_file():
            return path.resolve().relative_to(root).as_posix()
    return text


def _storage() -> Storage:
    return storages["archive"]


def _folder() -> FileSystemStorage | None:
    storage = _storage()
    return storage if isinstance(storage, FileSystemStorage) else None


def _open_new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)


def _sync_folder(path: Path) -> None:
    """Without it a power cut may take the name away, after the rows are gone."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _save(file: IO[bytes], *, name: str) -> None:
    storage = _storage()
    file.seek(0)
    if storage.exists(name):
        storage.delete(name)
    saved = storage.save(name, File(file))
    file.close()
    if saved != name:
        storage.delete(saved)
        raise ArchiveError(
            f"archive: the storage saved {name} as {saved} (0 rows deleted)"
        )
