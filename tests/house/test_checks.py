"""Ids of checks stay for ever: each is unique and has a test."""

import ast
import re

import pytest

from tests.house.sources import SOURCES, TESTS, tree

pytestmark = pytest.mark.once

ID = re.compile(r"^(project|scheduler|jobworker|workqueue|audit|[a-z_]+)\.[EWI]\d{3}$")


def ids_in(paths) -> list[str]:
    """Ids that are given to a message: id="workqueue.E001"."""
    return [
        keyword.value.value
        for path in paths
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "id"
        and isinstance(keyword.value, ast.Constant)
        and ID.match(str(keyword.value.value))
    ]


def test_every_id_is_used_once():
    found = ids_in(SOURCES)
    assert found, "no check was found: this test looks in the wrong place"
    assert sorted(found) == sorted(set(found))


def test_every_check_has_a_test():
    told = "\n".join(test.read_text() for test in TESTS)
    assert [id for id in sorted(set(ids_in(SOURCES))) if id not in told] == []
