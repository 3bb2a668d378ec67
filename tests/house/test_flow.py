"""The flow can be read: no signals, one reader of the environment."""

import ast

import pytest

from tests.house.sources import SOURCES, calls, imports, name, tree

pytestmark = pytest.mark.once

SIGNALS = (
    "django.dispatch",
    "django.db.models.signals",
    "django.core.signals",
    "django.contrib.auth.signals",
    "django.db.backends.signals",
)
# SQLite's registered functions have no other way in.
CONNECTION_CREATED = ("audit/apps.py", "django.db.backends.signals.connection_created")
# settings reads it; start hands it on; gunicorn and wsgi name the settings module in it;
# the check looks for misspelt names.
ENVIRONMENT = {
    "project/settings.py",
    "project/management/commands/start.py",
    "project/gunicorn.py",
    "project/wsgi.py",
    "project/checks.py",
    # bench hands it on to the processes that it measures.
    "project/bench/server.py",
    # What it was given is the program's, made from scratch by process.py.
    "jobworker/providers/guard.py",
}


def test_nothing_happens_by_signal():
    found = [
        (name(path), module)
        for path in SOURCES
        for module, _ in imports(path)
        if module.startswith(SIGNALS)
    ]
    assert found == [CONNECTION_CREATED]


def test_only_settings_reads_the_environment():
    found = {
        name(path)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in ("environ", "getenv", "environb")
    }
    assert found <= ENVIRONMENT


def test_every_change_says_what_was_or_what_is():
    """Rule I14 of `checkinvariants`, before anybody breaks it."""
    silent = [
        f"{name(path)}:{call.lineno}"
        for path in SOURCES
        for called, call in calls(path)
        if called == "change"
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "ledger"
        and not {"old", "new"} & {keyword.arg for keyword in call.keywords}
    ]
    assert silent == []
