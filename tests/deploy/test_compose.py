"""compose.yaml: from nothing to a running installation, its secrets made on the way."""

import re
import shutil
import subprocess
from typing import Any

import pytest

from project.kinds import KINDS
from project.modes import MODES
from project.settings import VERSION
from tests.deploy.files import ROOT, documents, drain, wrong_variables

pytestmark = pytest.mark.once

(COMPOSE,) = documents(ROOT / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {
    name: one for name, one in SERVICES.items() if one["image"].startswith("millrace:")
}


def test_every_mode_but_all_has_a_service_under_split():
    split = {
        one["environment"]["FALCON_MODE"]
        for one in OURS.values()
        if one["profiles"] == ["split"]
    }
    everything = [one for one in OURS.values() if one["profiles"] == ["all"]]
    assert split == MODES.keys() - {"all"}
    assert [one["environment"]["FALCON_MODE"] for one in everything] == ["all"]


@pytest.mark.parametrize("name", OURS)
def test_its_variables_are_in_the_registry(name):
    assert wrong_variables(OURS[name]["environment"]) == []


@pytest.mark.parametrize("name", OURS)
def test_it_may_drain_before_it_is_killed(name):
    grace = float(OURS[name]["stop_grace_period"].removesuffix("s"))
    assert grace > drain(OURS[name]["environment"]) + 10


@pytest.mark.parametrize("name", OURS)
def test_it_may_do_no_more_than_it_needs(name):
    one = OURS[name]
    assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["tmpfs"] == ["/tmp"]  # noqa: S108
    assert one["volumes"] == ["secrets:/run/millrace:ro", "archive:/data", "jobs:/jobs"]
    assert one["image"] == f"millrace:{VERSION}"


@pytest.mark.parametrize("name", OURS)
def test_only_modes_with_the_admin_are_published_and_only_on_this_machine(name):
    one = OURS[name]
    ports = one.get("ports", [])
    assert bool(ports) == MODES[one["environment"]["FALCON_MODE"]].admin
    assert all("127.0.0.1:8000}:80" in port for port in ports)


def test_nothing_waits_for_what_is_not_there():
    for name, one in SERVICES.items():
        assert set(one.get("depends_on", {})) <= set(SERVICES), name
        for volume in one.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"], name


def made(folder, tmp_path) -> None:
    """Run the service `secrets`: its own script, with a folder and a chown of the test's."""
    if not shutil.which("bash"):
        pytest.skip("no bash here, which the script is written in")
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "chown").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/owners\n')
    (tools / "chown").chmod(0o755)
    one = SERVICES["secrets"]
    script = one["command"][0].replace("$$", "$").replace("/run/millrace", str(folder))
    assert "$$" not in script
    subprocess.run(
        [*one["entrypoint"], script],
        check=True,
        timeout=30,
        env={"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin"},
    )


def test_secrets_are_made_once_and_each_is_what_its_variable_wants(tmp_path):
    folder = tmp_path / "secrets"
    folder.mkdir()
    made(folder, tmp_path)
    first = {path.name: path.read_text() for path in folder.iterdir()}
    made(folder, tmp_path)
    assert {path.name: path.read_text() for path in folder.iterdir()} == first

    files = {
        name.removesuffix("_FILE"): value.rpartition("/")[2]
        for one in OURS.values()
        for name, value in one["environment"].items()
        if name.endswith("_FILE")
    }
    assert {"DATABASE_URL", "SECRET_KEY", "FIELD_KEY", "METRICS_TOKEN"} == set(files)
    database: Any = KINDS["database"](first[files["DATABASE_URL"]])
    assert database["PASSWORD"] == first["database_password"]
    assert (database["HOST"], database["NAME"]) == ("db", "millrace")
    KINDS["fernet"](first[files["FIELD_KEY"]])
    assert len(first["secret_key"]) >= 44
    assert len(set(first.values())) == len(first)
    assert re.fullmatch(r"[A-Za-z0-9]{30,}", first["database_password"])
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


def test_the_password_of_the_database_belongs_to_its_server_and_the_rest_to_us(
    tmp_path,
):
    folder = tmp_path / "secrets"
    folder.mkdir()
    made(folder, tmp_path)
    owners = dict(
        reversed(line.split())
        for line in (tmp_path / "owners").read_text().splitlines()
    )
    assert owners.pop("database_password") == "postgres"
    assert set(owners.values()) == {"10001"}
