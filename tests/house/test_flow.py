"""The flow can be read: no signals, one reader of the environment."""

import ast
from pathlib import Path

import pytest

from tests.house.sources import ROOT, SOURCES, imports, name, tree

pytestmark = pytest.mark.once

SIGNALS = (
    "django.dispatch",
    "django.db.models.signals",
    "django.core.signals",
    "django.contrib.auth.signals",
)
# settings reads it; start hands it on; gunicorn and wsgi name the settings module in it;
# the check looks for misspelt names.
ENVIRONMENT = {
    "project/settings.py",
    "project/management/commands/start.py",
    "project/gunicorn.py",
    "project/wsgi.py",
    "project/checks.py",
}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_happens_by_signal(path: Path):
    found = [
        (module, line) for module, line in imports(path) if module.startswith(SIGNALS)
    ]
    connection = [
        module
        for module, _ in imports(path)
        if module.startswith("django.db.backends.signals")
    ]
    assert found == []
    # SQLite's registered functions have no other way in.
    assert connection == [] or path == ROOT / "audit" / "apps.py"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_settings_reads_the_environment(path: Path):
    found = [
        node.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in ("environ", "getenv", "environb")
    ]
    assert found == [] or name(path) in ENVIRONMENT
