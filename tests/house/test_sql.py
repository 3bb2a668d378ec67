"""Raw SQL stands in sql.py, under a sentence that says why; nowhere else."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.sources import SOURCES, calls, docstrings, name, tree

pytestmark = pytest.mark.once

STATEMENT = re.compile(
    r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|CREATE|ALTER|DROP|TRUNCATE|SET"
    r"|LOCK TABLE|NOTIFY|LISTEN|PRAGMA|VACUUM|ANALYZE)\s+\w"
)
EXECUTORS = {"execute", "executemany", "raw"}
STATEMENTS = [path for path in SOURCES if path.name == "sql.py"]
# The PRAGMAs of every new SQLite connection are configuration.
ELSEWHERE = [path for path in SOURCES if path.name not in ("sql.py", "settings.py")]


def is_literal(node: ast.expr) -> bool:
    """A text that is made on the spot, whole or in parts."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return is_literal(node.left) or is_literal(node.right)
    return isinstance(node, ast.JoinedStr)


def statements(path: Path) -> list[str]:
    prose = docstrings(path)
    return [
        f"{name(path)}:{node.lineno} {node.value[:40]!r}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in prose
        and STATEMENT.match(node.value)
    ]


def unexplained(path: Path) -> list[str]:
    """Public texts without a comment above them, or above the group that they end."""
    lines = path.read_text().splitlines()
    missing = []
    for node in tree(path).body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        text = isinstance(node.value, ast.Constant | ast.JoinedStr | ast.BinOp)
        if text and not node.targets[0].id.startswith("_"):
            above = node.lineno - 2
            while above >= 0 and lines[above].strip() and lines[above][0] != "#":
                above -= 1
            if above < 0 or not lines[above].startswith("#"):
                missing.append(f"{name(path)}:{node.lineno} {node.targets[0].id}")
    return missing


def test_no_statement_is_written_outside_sql_py():
    assert [found for path in ELSEWHERE for found in statements(path)] == []


def test_nobody_executes_a_text_made_on_the_spot():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in ELSEWHERE
        for called, node in calls(path)
        if called in EXECUTORS and node.args and is_literal(node.args[0])
    ]
    assert found == []


def test_the_orm_is_not_bypassed_half_way():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in SOURCES
        for called, node in calls(path)
        if called in ("RawSQL", "extra")
    ]
    assert found == []


def test_every_statement_says_why():
    assert [found for path in STATEMENTS for found in unexplained(path)] == []
