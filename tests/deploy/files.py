"""The files that deploy Millrace, parsed; and what all of them have to agree with."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from project.environment import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
REGISTRY = {variable.name: variable for variable in VARIABLES}
# Python's, uv's and PostgreSQL's own, and what a process has anyway.
FOREIGN = ("PYTHON", "UV_", "POSTGRES_")
ANYWAY = {"PATH", "HOME", "USER"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One of a Dockerfile."""

    word: str  # RUN, COPY, ...
    text: str

    @property
    def arguments(self) -> list[str]:
        """Of a form in JSON, or of words."""
        if self.text.startswith("["):
            return json.loads(self.text)
        return shlex.split(self.text)

    @property
    def variables(self) -> dict[str, str]:
        """Of ENV."""
        return dict(pair.split("=", 1) for pair in self.arguments)


def dockerfile() -> list[list[Instruction]]:
    """The stages, each from its FROM on; the first holds what stands before."""
    lines = [
        line
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    stages: list[list[Instruction]] = [[]]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, text = line.strip().partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append(Instruction(word, text.strip()))
    return stages


def values(stage: list[Instruction], word: str) -> list[Instruction]:
    """The instructions of one kind."""
    return [one for one in stage if one.word == word]


def documents(path: Path) -> list[dict[str, Any]]:
    """Of a YAML file."""
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def wrong_variables(given: dict[str, str]) -> list[str]:
    """Sentences: names that are not in the registry, values that it refuses.

    A value that is filled in elsewhere (`${...}`, `%i`, a capital word) is not read.
    """
    found = []
    for name, value in given.items():
        if name in ANYWAY or name.startswith(FOREIGN):
            continue
        variable = REGISTRY.get(name.removesuffix("_FILE"))
        if variable is None:
            found.append(f"{name} is not in the registry")
        elif not name.endswith("_FILE") and not any(c in value for c in "$%"):
            try:
                variable.parse(value)
            except ValueError as problem:
                found.append(f"{name}={value} {problem}")
    return found


def drain(given: dict[str, str]) -> float:
    """WORKER_DRAIN_TIMEOUT_S as it is given, or its default; seconds."""
    name = "WORKER_DRAIN_TIMEOUT_S"
    return float(given.get(name, REGISTRY[name].default))
