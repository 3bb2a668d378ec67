"""One clock: audit/clock.py. Node clocks decide nothing."""

import ast
from pathlib import Path

import pytest

from tests.house.sources import ROOT, SOURCES, calls, imports, name, tree

pytestmark = pytest.mark.once

CLOCK = ROOT / "audit" / "clock.py"
OTHERS = [path for path in SOURCES if path != CLOCK]


@pytest.mark.parametrize("path", OTHERS, ids=name)
def test_nobody_asks_the_node_for_the_time(path: Path):
    found = [
        (node.lineno, f"{node.func.value.id}.{called}()")
        for called, node in calls(path)
        if isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, called)
        in {
            ("timezone", "now"),
            ("datetime", "now"),
            ("datetime", "utcnow"),
            ("datetime", "today"),
            ("date", "today"),
            ("time", "time"),
        }
    ]
    assert found == []


@pytest.mark.parametrize("path", OTHERS, ids=name)
def test_no_field_stamps_itself(path: Path):
    found = [
        keyword.value.lineno
        for _, node in calls(path)
        for keyword in node.keywords
        if keyword.arg in ("auto_now", "auto_now_add")
    ]
    assert found == []


@pytest.mark.parametrize("path", OTHERS, ids=name)
def test_nobody_uses_djangos_now_which_stands_still_in_a_transaction(path: Path):
    assert [
        line for module, line in imports(path) if module.endswith("functions.Now")
    ] == []
    assert "timezone.now" not in [
        ast.unparse(keyword.value)
        for _, node in calls(path)
        for keyword in node.keywords
        if keyword.arg == "default"
    ]
    assert tree(path)
