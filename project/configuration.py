"""Read the environment by its registry: values, where each came from, what is wrong.

settings.py calls `read` once. Whatever is wrong becomes one line per variable on
standard error and exit code 78, for every command and for the web process.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import environ

from project.environment import VARIABLES, Variable

EXIT_CONFIGURATION = 78  # sysexits.h: EX_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A variable's value and where it came from."""

    variable: Variable
    text: str  # as it was written; "" = unset
    value: object  # parsed; None = unset
    source: str  # environment | .env | the file's path | default | unset


class Configuration(dict[str, Given]):
    """All variables, by name."""

    problems: tuple[str, ...] = ()  # a sentence each, starting with the variable

    def __getattr__(self, name: str) -> Any:
        """The parsed value: configuration.PORT."""
        try:
            return self[name].value
        except KeyError:
            raise AttributeError(name) from None


def read(environment: Mapping[str, str], *, dotenv: Path) -> Configuration:
    """Read every variable. The environment wins over .env, NAME_FILE over NAME."""
    sources = [("environment", environment)]
    installation = environment.get("DJANGO_ENV", "").strip()
    if installation != "test":  # tests are the same wherever they run
        sources.append((".env", _read_dotenv(dotenv)))
    found = Configuration()
    problems = []
    for variable in VARIABLES:
        try:
            text, source = _find(variable.name, sources)
            if not text:
                text = variable.default_in(installation or "development")
                source = "default" if text else "unset"
            value = variable.parse(text) if text else None
        except ValueError as problem:
            problems.append(_sentence(variable, text, problem))
            continue
        found[variable.name] = Given(
            variable=variable, text=text, value=value, source=source
        )
        if variable.name == "DJANGO_ENV":
            installation = str(value)
        if variable.required and value is None and installation == "production":
            problems.append(_missing(variable))
    found.problems = tuple(problems)
    return found


def refuse(problems: tuple[str, ...]) -> NoReturn:
    """End the process: a line per problem, exit code 78."""
    for problem in problems:
        sys.stderr.write(f"millrace: {problem}\n")
    sys.stderr.flush()
    raise SystemExit(EXIT_CONFIGURATION)


def _read_dotenv(path: Path) -> dict[str, str]:
    class Dotenv(environ.Env):
        ENVIRON: dict[
            str, str
        ] = {}  # not the process's: what it says stays visible as its own

    if path.is_file():
        Dotenv.read_env(path)
    return Dotenv.ENVIRON


def _find(name: str, sources: list[tuple[str, Mapping[str, str]]]) -> tuple[str, str]:
    for source, values in sources:
        if path := values.get(f"{name}_FILE", "").strip():
            try:
                return Path(path).read_text().strip(), path
            except (OSError, UnicodeDecodeError) as problem:
                reason = getattr(problem, "strerror", None) or "it is no text"
                raise ValueError(
                    f"cannot be read from {name}_FILE={path}: {reason}"
                ) from None
        if text := values.get(name, "").strip():
            if not text.isascii() and text != text.encode("utf-8", "replace").decode():
                raise ValueError("is no text in UTF-8")
            return text, source
    return "", "unset"


def _sentence(variable: Variable, text: str, problem: ValueError) -> str:
    shown = "" if variable.secret or not text else f" {_shortened(text)!r}"
    return f"{variable.name}{shown} {problem}"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _missing(variable: Variable) -> str:
    return f"{variable.name} is not set; DJANGO_ENV=production needs it ({variable.purpose.rstrip('.')})"
