"""One clock: audit/clock.py. Node clocks decide nothing."""

import ast

import pytest

from tests.house.sources import ROOT, SOURCES, calls, imports, name

pytestmark = pytest.mark.once

OTHERS = [path for path in SOURCES if path != ROOT / "audit" / "clock.py"]
CLOCKS = {
    ("timezone", "now"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
}


def test_nobody_asks_the_node_for_the_time():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in OTHERS
        for called, node in calls(path)
        if isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, called) in CLOCKS
    ]
    assert found == []


def test_no_field_stamps_itself():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in OTHERS
        for _, node in calls(path)
        for keyword in node.keywords
        if keyword.arg in ("auto_now", "auto_now_add")
        or (keyword.arg == "default" and ast.unparse(keyword.value) == "timezone.now")
    ]
    assert found == []


def test_nobody_uses_djangos_now_which_stands_still_in_a_transaction():
    found = [
        f"{name(path)}:{line}"
        for path in OTHERS
        for module, line in imports(path)
        if module.endswith("functions.Now")
    ]
    assert found == []
