"""terraform_lines: what Terraform says with -json, a line at a time."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jobworker.context import JobContext

LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
STEPS = {"create": 1, "update": 1, "delete": 1, "replace": 2}  # of a planned change
MOST_ERRORS = 3  # told in full; more are counted
MOST_PROGRESS = 99  # the rest comes with the end


@dataclass(slots=True, kw_only=True)
class Said:
    """What one command has told so far. `line` takes the next line."""

    ctx: JobContext
    step: str  # "plan" | "apply": the phase's first word
    to_do: bool = False  # set by the plan's exit code
    planned: int = 0  # steps; a replacement is two
    finished: int = 0
    failed: int = 0  # steps that broke off: by an error, or told to stop
    drifted: int = 0  # resources that differ from the state
    added: int = 0
    changed: int = 0
    destroyed: int = 0
    errors: list[str] = field(default_factory=list)

    def line(self, line: str) -> None:
        """Log it, and take from it what it tells."""
        told = _object(line)
        if told is None:
            if line.strip():
                self.ctx.log(line)
            return
        level = LEVELS.get(str(told.get("@level")), logging.INFO)
        kind = str(told.get("type"))
        if kind == "diagnostic":
            self._diagnostic(told.get("diagnostic"), level)
            return
        self.ctx.log(str(told.get("@message", line)), level)
        if kind in _TAKEN:
            _TAKEN[kind](self, told)

    @property
    def error(self) -> str:
        """What went wrong, as one text; "": nothing was told."""
        more = len(self.errors) - MOST_ERRORS
        return "; ".join(self.errors[:MOST_ERRORS]) + (
            f"; and {more} more" if more > 0 else ""
        )

    def _diagnostic(self, about: Any, level: int) -> None:
        about = about if isinstance(about, dict) else {}
        summary, detail = (
            str(about.get(name) or "").strip() for name in ("summary", "detail")
        )
        address = f" in {about['address']}" if about.get("address") else ""
        wrong = about.get("severity") == "error"
        said = f"{summary}{address}: {detail}" if detail else f"{summary}{address}"
        if wrong:
            self.errors.append(said)
        self.ctx.log(f"{'Error' if wrong else 'Warning'}: {said}", level)

    def _planned_change(self, told: dict[str, Any]) -> None:
        self.planned += STEPS.get(str(_inner(told, "change").get("action")), 0)

    def _drift(self, _: dict[str, Any]) -> None:
        self.drifted += 1

    def _finished(self, _: dict[str, Any]) -> None:
        self.finished += 1
        self._show()

    def _errored(self, _: dict[str, Any]) -> None:
        self.failed += 1
        self._show()

    def _started(self, _: dict[str, Any]) -> None:
        self._show()

    def _summary(self, told: dict[str, Any]) -> None:
        changes = _inner(told, "changes")
        self.added, self.changed, self.destroyed = (
            found if isinstance(found := changes.get(name), int) else 0
            for name in ("add", "change", "remove")
        )

    def _show(self) -> None:
        of = max(self.planned, self.finished + self.failed)
        plural = "" if of == 1 else "s"
        failed = f", {self.failed} failed" if self.failed else ""
        self.ctx.phase(f"{self.step}, {self.finished} of {of} resource{plural}{failed}")
        if of:
            self.ctx.progress(min(MOST_PROGRESS, 100 * self.finished / of))


_TAKEN: dict[str, Callable[[Said, dict[str, Any]], None]] = {
    "planned_change": Said._planned_change,
    "resource_drift": Said._drift,
    "apply_start": Said._started,
    "apply_complete": Said._finished,
    "apply_errored": Said._errored,
    "change_summary": Said._summary,
}


def _object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _inner(told: dict[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}
