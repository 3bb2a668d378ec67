"""packer_lines: what Packer says with -machine-readable, a line at a time.

`epoch,target,type,data…`; in the data `%!(PACKER_COMMA)` is a comma, `\\n` and `\\r` are
line ends.
"""

import logging
import re
from dataclasses import dataclass, field

from jobworker.context import JobContext

# A build starts each of its lines with its own name; their number is known only so.
BUILD = re.compile(r"==> ([\w.-]+): (.+)")
FINISHED = re.compile(r"Build '([^']+)' (finished|errored) after")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: ")
CANCELLING = "Cancelling build"
NO_IMAGE = "fnoeding.null"  # the builder that exports nothing
MOST_PROGRESS = 99  # the rest comes with the end
MOST_ERRORS = 3
LEVELS = {"say": logging.INFO, "message": logging.INFO, "error": logging.ERROR}


@dataclass(slots=True, kw_only=True)
class Artifact:
    """What one build made, and what was made of that."""

    build: str  # "golden.file.rootfs"
    provider: str = ""  # builder id of the first: "packer.file"
    external_id: str = ""  # "eu-west-1:ami-0abc"
    files: list[str] = field(default_factory=list)  # in the workspace

    @property
    def is_image(self) -> bool:
        """Whether there is anything to keep."""
        return self.provider != NO_IMAGE


@dataclass(slots=True, kw_only=True)
class Said:
    """What one command has told so far. `line` takes the next line."""

    ctx: JobContext
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)  # of builds
    told_wrong: list[str] = field(default_factory=list)  # of Packer as a whole
    error_count: int = 0
    cancelling: bool = False
    _builds: set[str] = field(default_factory=set)
    _finished: set[str] = field(default_factory=set)

    def line(self, line: str) -> None:
        """Log what it says, take what it tells."""
        parts = line.split(",")
        if len(parts) < 4 or not parts[0].isdigit():
            if line.strip():
                self.ctx.log(line)
            return
        target, kind, data = parts[1], parts[2], [_plain(part) for part in parts[3:]]
        if kind == "ui" and len(data) > 1:
            self._ui(data[0], data[1])
        elif kind == "artifact-count":
            self.artifacts.setdefault(target, Artifact(build=target))
        elif kind == "artifact" and len(data) > 1:
            self._artifact(target, data)
        elif kind == "error":
            self.errors.append(f"{target}: {data[0].strip()}" if target else data[0])
        elif kind == "error-count" and data[0].isdigit():
            self.error_count = int(data[0])

    @property
    def error(self) -> str:
        """What went wrong, as one text; "": nothing was told."""
        found = self.errors or self.told_wrong
        more = len(found) - MOST_ERRORS
        text = "; ".join(found[:MOST_ERRORS]) + (
            f"; and {more} more" if more > 0 else ""
        )
        if self.error_count and self.errors:
            of = self.error_count + len(self.artifacts)
            text = f"{self.error_count} of {of} builds failed: {text}"
        return text

    def _ui(self, kind: str, said: str) -> None:
        said = STAMP.sub("", said, count=1).strip("\r\n")
        self.ctx.log(said, LEVELS.get(kind, logging.INFO))
        if said.startswith("Error: "):
            self.told_wrong.append(" ".join(said.removeprefix("Error: ").split()))
        self.cancelling = self.cancelling or CANCELLING in said
        if step := BUILD.match(said):
            self._builds.add(step[1])
            self.ctx.phase(f"{step[1]}: {step[2]}")
        if over := FINISHED.match(said):
            self._builds.add(over[1])
            # Told to stop it says "finished" of what it has just broken off.
            if over[2] == "finished" and not self.cancelling:
                self._finished.add(over[1])
            of = len(self._builds)
            self.ctx.progress(min(MOST_PROGRESS, 100 * len(self._finished) / of))

    def _artifact(self, target: str, data: list[str]) -> None:
        artifact = self.artifacts.setdefault(target, Artifact(build=target))
        number, kind, value = data[0], data[1], data[-1]
        if kind == "file" and value not in artifact.files:
            artifact.files.append(value)
        # Later ones are what post-processors made of the first.
        elif kind == "builder-id" and number == "0":
            artifact.provider = value
        elif kind == "id" and number == "0":
            artifact.external_id = value


def _plain(data: str) -> str:
    return (
        data.replace("%!(PACKER_COMMA)", ",").replace("\\n", "\n").replace("\\r", "\r")
    )
