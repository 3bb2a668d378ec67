"""Where things stand: a handler's file, its row and its test share one name."""

import ast
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from scheduler.timetable import TIMETABLE
from tests.house.sources import ROOT, SOURCES, TESTS, imports, name, tree
from workqueue import registry

pytestmark = pytest.mark.once

HANDLERS = ROOT / "scheduler" / "handlers"
# Without a test of their own: nothing in them decides anything that others' tests do not see.
UNMIRRORED = {
    "__init__",
    "apps",
    "admin",
    "settings",
    "urls",
    "wsgi",
    "sql",
    "exceptions",
    "models",
}


def defines_run(path: Path) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and node.name == "run"
        for node in tree(path).body
    )


def test_every_handler_file_is_on_the_timetable_and_every_row_has_a_file():
    on_disk = {
        f"{p.parent.name}.{p.stem}" for p in HANDLERS.glob("*/*.py") if defines_run(p)
    }
    assert on_disk == {row.key for row in TIMETABLE}


def test_every_row_imports():
    for row in TIMETABLE:
        assert callable(registry.load(row.key))
        registry.due(row.key)


def test_every_domain_folder_is_an_installed_app():
    folders = {p.parent.name for p in HANDLERS.glob("*/__init__.py")}
    assert {
        entry.removeprefix("scheduler.handlers.").split(".")[0]
        for entry in settings.DOMAIN_APPS
    } == folders


def test_no_module_is_longer_than_400_lines():
    lengths = {name(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: length for path, length in lengths.items() if length > 400} == {}


def mirrored(path: Path) -> bool:
    """tests/<app>/test_<module>.py; a part of a larger story may stand in its neighbour's."""
    relative = path.relative_to(ROOT)
    if path.stem in UNMIRRORED or {"management", "models"} & set(relative.parts):
        return True
    folder = ROOT / "tests" / relative.parent
    tests = [*folder.glob("test_*.py"), *folder.parent.glob("test_*.py")]
    module = ".".join(relative.with_suffix("").parts)
    return any(
        f"{test.stem}_".startswith(f"test_{path.stem}_") for test in tests
    ) or any(module in imported(test) for test in tests)


@cache
def imported(test: Path) -> set[str]:
    """The modules that a test imports, under both readings of `from a import b`."""
    found = {module for module, _ in imports(test)}
    return found | {module.rpartition(".")[0] for module in found}


def test_every_module_has_a_test_in_the_mirrored_folder():
    assert [name(path) for path in SOURCES if not mirrored(path)] == []


COMMANDS = [
    path
    for path in SOURCES
    if path.parent.name == "commands" and path.stem != "__init__"
]


def test_every_command_is_called_by_a_test():
    words = {
        node.value
        for test in TESTS
        for node in ast.walk(tree(test))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [name(path) for path in COMMANDS if path.stem not in words] == []


def test_every_command_has_help_with_an_example():
    missing = [
        name(path)
        for path in COMMANDS
        if f"manage.py {path.stem}" not in path.read_text()
    ]
    assert missing == []
