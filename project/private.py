"""What a laptop needs and nobody wants to think up: made once, kept in a private file.

Outside production only. The file stands beside the database, mode 0600: the key that
signs sessions, and the first administrator's password.
"""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

NAME = "millrace.private"


def values(folder: Path) -> dict[str, str]:
    """The file's values, made on first use.

    Where it cannot be written they live as long as this process; `start` refuses
    such a folder before anything else.
    """
    path = folder / NAME
    with suppress(OSError):
        if not path.exists():
            _make(path)
        return dict(
            line.split("=", 1) for line in path.read_text().splitlines() if "=" in line
        )
    return _new()


def _new() -> dict[str, str]:
    return {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ADMINISTRATOR_PASSWORD": secrets.token_urlsafe(12),
    }


def _make(path: Path) -> None:
    """Write it whole or not at all; of two processes at once the first wins."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{NAME}.")  # mode 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.writelines(f"{key}={value}\n" for key, value in _new().items())
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
