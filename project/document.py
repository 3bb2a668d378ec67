"""document: docs/settings.md, made from the registries of what can be configured."""

from collections.abc import Iterable

from jobworker import caps
from project.environment import EVERYWHERE, SECTIONS, Variable
from workqueue.bounds import Key
from workqueue.policy import WORKER_NODE_CONFIGURATION

HEAD = """\
# Settings

<!-- Written by `make docs`; a test compares. Change project/environment.py, workqueue/policy.py or jobworker/caps.py instead. -->

Three places, by when a value has to be known:

- **Environment variables**, before there is a database. Each can also be given as `NAME_FILE`, the path of a file that
  holds the value (the file wins), or as a line of `.env` in the project's folder (the environment wins). A change
  needs a restart. `manage.py showconfig` prints what a process sees and where it came from, secrets masked. A wrong or
  missing value ends every command with one line that names it, and exit code 78. What this machine does not give (an address,
  a folder) ends `start` and `showconfig` in the same way.
- **Live settings**, in the admin under Global Settings > Settings and Job Worker. Every process applies a change within 5 seconds. Each
  version is kept and can be restored. A value out of bounds is refused with the range; one that got in by SQL is
  clamped, and the process's report says so.
- **The timetable**, `scheduler/timetable.py`, is code. Its cadences can be overridden per row in the admin.
"""
VARIABLES_HEAD = "| Variable | Unit | Range | Default | Read in mode | What it is |\n|---|---|---|---|---|---|"
KEYS_HEAD = "| Key | Unit | Range | Default | What it is |\n|---|---|---|---|---|"


def document() -> str:
    """The whole file."""
    parts = [HEAD]
    for section, variables in SECTIONS.items():
        parts.append(
            f"## {section}\n\n{_table(VARIABLES_HEAD, map(_variable, variables))}\n"
        )
    for declaration in (WORKER_NODE_CONFIGURATION, caps.DECLARATION):
        rows = map(_key, declaration.keys)
        parts.append(f"## {declaration.name} (live)\n\n{_table(KEYS_HEAD, rows)}\n")
    return "\n".join(parts)


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([head, *(f"| {' | '.join(row)} |" for row in rows)])


def _variable(variable: Variable) -> tuple[str, ...]:
    purpose = variable.purpose
    if variable.unset:
        purpose += f" Unset: {variable.unset}"
    if variable.secret:
        purpose += " Secret."
    modes = "" if variable.modes == EVERYWHERE else ", ".join(variable.modes)
    return (
        f"`{variable.name}`",
        variable.unit,
        _range(variable),
        _default(variable),
        modes,
        purpose,
    )


def _range(variable: Variable) -> str:
    if variable.choices:
        return ", ".join(variable.choices)
    if variable.low is not None:
        return f"{variable.low} to {variable.high}"
    return "on, off" if variable.kind == "switch" else ""


def _default(variable: Variable) -> str:
    if variable.required:
        return "**required** in production"
    text = f"`{variable.default}`" if variable.default else ""
    if variable.production is not None and variable.production != variable.default:
        text += f"; in production `{variable.production}`"
    return text


def _key(key: Key) -> tuple[str, ...]:
    if key.type == "boolean":
        limits, default = "on, off", "on" if key.default else "off"
    else:
        limits = ", ".join(key.choices) or f"{key.low} to {key.high}"
        default = str(key.default)
    return (f"`{key.name}`", key.unit, limits, f"`{default}`", key.sentence)
