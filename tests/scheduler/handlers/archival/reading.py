"""What lies in an archive's folder, and in a file of it."""

import gzip
import json
from pathlib import Path
from typing import Any


def files(root: Path) -> list[str]:
    return sorted(
        p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
