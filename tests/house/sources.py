"""What house tests look at: the project's own files."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = [
    app
    for app in ("project", "scheduler", "workqueue", "jobworker", "audit")
    if (ROOT / app).is_dir()
]
SOURCES = [
    path
    for app in APPS
    for path in sorted((ROOT / app).rglob("*.py"))
    if "migrations" not in path.parts
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def name(path: Path) -> str:
    """'scheduler/ticker.py': the id of a parametrized test."""
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    """The module, parsed."""
    return ast.parse(path.read_text(), filename=str(path))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """All calls with the last part of what is called: ("execute", node)."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr, node
            elif isinstance(node.func, ast.Name):
                yield node.func.id, node


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Everything imported, as dotted names, with the line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (f"{node.module}.{alias.name}", node.lineno) for alias in node.names
            )


def docstrings(path: Path) -> set[int]:
    """Ids of the constant nodes that are docstrings."""
    return {
        id(node.body[0].value)
        for node in ast.walk(tree(path))
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
