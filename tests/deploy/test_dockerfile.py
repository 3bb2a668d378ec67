"""The image: what can be seen without building it."""

import re
import tomllib

import pytest

from tests.deploy.files import ROOT, dockerfile, values, wrong_variables
from tests.house.sources import APPS

pytestmark = pytest.mark.once

_, BUILD, IMAGE = dockerfile()


def environment() -> dict[str, str]:
    return {
        name: value
        for one in values(IMAGE, "ENV")
        for name, value in one.variables.items()
    }


def test_only_what_runs_gets_into_the_image():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    assert kept == {"pyproject.toml", "uv.lock", "manage.py", "templates", *APPS}


def test_its_variables_are_in_the_registry():
    assert wrong_variables(environment()) == []


def test_it_is_production_with_port_80_and_lines_for_machines():
    given = environment()
    assert (given["DJANGO_ENV"], given["PORT"], given["LOG_FORMAT"]) == (
        "production",
        "80",
        "json",
    )
    assert [one.text for one in values(IMAGE, "EXPOSE")] == ["80"]


def test_no_secret_is_baked_in():
    told = " ".join(one.text for one in IMAGE)
    for name in ("SECRET_KEY", "FIELD_KEY", "DATABASE_URL", "TOKEN", "PASSWORD"):
        assert name not in told
    # What the build needs stands in one command, and is gone after it.
    for one in values(BUILD, "ENV") + values(BUILD, "ARG"):
        assert "SECRET_KEY" not in one.text


def test_it_runs_as_nobody_in_particular():
    (user,) = values(IMAGE, "USER")
    assert user.text == "10001:0"
    assert IMAGE.index(user) > max(map(IMAGE.index, values(IMAGE, "RUN")))


def test_nothing_that_compiles_or_installs_is_left_in_it():
    assert not any("uv" in one.text.split() for one in values(IMAGE, "RUN"))
    (copied,) = values(IMAGE, "COPY")
    assert copied.text == "--from=build /app /app"
    for one in values(IMAGE, "RUN"):
        assert "rm -rf /var/lib/apt/lists" in one.text


def test_no_shell_stands_between_the_stop_and_the_program():
    """A shell as process 1 swallows SIGTERM, and workers are killed hard (H33)."""
    (entry,), (command,) = values(IMAGE, "ENTRYPOINT"), values(IMAGE, "CMD")
    for one in (entry, command):
        assert one.text.startswith("["), "the other form runs a shell"
    assert [*entry.arguments, *command.arguments] == [
        *("tini", "--", "python", "manage.py"),
        "start",
    ]
    assert [one.text for one in values(IMAGE, "STOPSIGNAL")] == ["SIGTERM"]


def test_health_is_asked_by_the_command_that_knows_the_modes():
    (health,) = values(IMAGE, "HEALTHCHECK")
    assert health.text.endswith('CMD ["python", "-m", "project.health"]')


def test_what_is_installed_is_what_is_locked():
    installs = [one.text for one in values(BUILD, "RUN") if "uv sync" in one.text]
    assert installs == ["uv sync --frozen --no-dev --no-cache"]


def test_python_is_the_one_that_the_project_needs():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = re.search(r"PYTHON=(\d+\.\d+)-slim", (ROOT / "Dockerfile").read_text())
    assert base
    assert needed["requires-python"] == f">={base[1]}"
