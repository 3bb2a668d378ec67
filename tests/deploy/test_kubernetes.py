"""deploy/kubernetes: every mode, restricted, with time to drain."""

from pathlib import Path
from typing import Any

import pytest

from project.modes import JOBWORKER, MODES
from project.probes import PROBES
from project.settings import VERSION
from tests.deploy.files import DEPLOY, documents, drain, wrong_variables
from workqueue.connections import ROLES

pytestmark = pytest.mark.once

FOLDER = DEPLOY / "kubernetes"
BASE = [d for path in (FOLDER / "base").glob("*.yaml") for d in documents(path)]
(CONFIG,) = [d["data"] for d in BASE if d["kind"] == "ConfigMap"]
(SECRET,) = [d["stringData"] for d in BASE if d["kind"] == "Secret"]


def of(kind: str) -> dict[str, dict[str, Any]]:
    """All of both ways of running, by the mode that they are for."""
    return {
        document["metadata"]["name"].removeprefix("millrace-"): document
        for way in ("split", "all")
        for path in (FOLDER / way).glob("*.yaml")
        for document in documents(path)
        if document["kind"] == kind
    }


DEPLOYMENTS = of("Deployment")
modes = pytest.mark.parametrize("mode", DEPLOYMENTS)


def pod(mode: str) -> dict[str, Any]:
    spec: dict[str, Any] = DEPLOYMENTS[mode]["spec"]["template"]["spec"]
    return spec


def container(mode: str) -> dict[str, Any]:
    (one,) = pod(mode)["containers"]
    return dict(one)


def labels(mode: str) -> dict[str, str]:
    found: dict[str, str] = DEPLOYMENTS[mode]["spec"]["template"]["metadata"]["labels"]
    return found


def test_every_mode_has_its_deployment():
    assert DEPLOYMENTS.keys() == MODES.keys()
    for mode in DEPLOYMENTS:
        env = {one["name"]: one["value"] for one in container(mode)["env"]}
        assert env["FALCON_MODE"] == mode


def test_variables_are_in_the_registry_and_secrets_stay_out_of_the_configmap():
    assert wrong_variables(CONFIG) == []
    assert [p for p in wrong_variables(SECRET) if "registry" in p] == []
    assert not CONFIG.keys() & SECRET.keys()
    assert SECRET.keys() >= {"DATABASE_URL", "SECRET_KEY", "FIELD_KEY"}


@pytest.mark.parametrize(
    "folder", [p for p in FOLDER.iterdir() if p.is_dir()], ids=lambda p: p.name
)
def test_what_kustomize_is_to_read_is_there_and_nothing_is_forgotten(folder: Path):
    (kustomization,) = documents(folder / "kustomization.yaml")
    listed = set(kustomization["resources"])
    assert all((folder / name).exists() for name in listed)
    there = {p.name for p in folder.glob("*.yaml") if ".example" not in p.name}
    assert there - {"kustomization.yaml"} == {n for n in listed if n.endswith(".yaml")}
    for image in kustomization.get("images", []):
        assert image["newTag"] == VERSION


@modes
def test_a_pod_may_drain_before_it_is_killed(mode):
    grace = pod(mode)["terminationGracePeriodSeconds"]
    stop = container(mode).get("lifecycle", {}).get("preStop", {})
    before = int(stop["exec"]["command"][1]) if stop else 0
    assert grace > before + drain(CONFIG) + 10


def test_there_is_one_job_worker_at_a_time_never_none_and_never_two_pools():
    spec = DEPLOYMENTS["jobworker"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    given = {one["name"]: one["value"] for one in container("jobworker")["env"]}
    need = ROLES["jobworker"]
    pool = int(given["DB_POOL_SIZE"]), int(given["DB_MAX_OVERFLOW"])
    assert pool == (need.size, need.overflow)


@modes
def test_it_passes_the_restricted_standard(mode):
    assert pod(mode)["securityContext"]["runAsNonRoot"] is True
    assert pod(mode)["securityContext"]["runAsUser"] == 10001
    assert pod(mode)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(mode)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod(mode)["automountServiceAccountToken"] is False
    # Variables of services would look like ours: a service `web` gives WEB_PORT.
    assert pod(mode)["enableServiceLinks"] is False


@modes
def test_it_is_asked_whether_it_lives(mode):
    one = container(mode)
    if MODES[mode].serves:
        ports = {port["name"]: port["containerPort"] for port in one["ports"]}
        assert ports == {"http": int(CONFIG["PORT"])}
        for name, path in (
            ("startupProbe", "/startupz"),
            ("livenessProbe", "/livez"),
            ("readinessProbe", "/readyz"),
        ):
            assert one[name]["httpGet"] == {"path": path, "port": "http"}
            assert path in PROBES
    else:
        assert "ports" not in one
        for name in ("startupProbe", "livenessProbe"):
            assert one[name]["exec"]["command"] == ["python", "-m", "project.health"]
    # A migration has ten minutes before anybody loses patience.
    start = one["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 600


@modes
def test_what_it_mounts_is_there(mode):
    there = {volume["name"] for volume in pod(mode)["volumes"]}
    mounts = {one["name"]: one["mountPath"] for one in container(mode)["volumeMounts"]}
    assert there == mounts.keys()
    assert mounts["tmp"] == "/tmp"  # noqa: S108
    if {"admin", "worker"} & {mode, *(["admin"] if MODES[mode].admin else [])}:
        assert mounts["archive"] == "/data"
    assert mounts.get("jobs") == (
        "/jobs" if JOBWORKER in MODES[mode].processes else None
    )


@modes
def test_a_drain_of_a_machine_takes_one_pod_at_a_time(mode):
    budget = of("PodDisruptionBudget")[mode]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= labels(mode).items()
    assert (
        DEPLOYMENTS[mode]["spec"]["selector"]["matchLabels"].items()
        <= labels(mode).items()
    )


@modes
def test_services_lead_to_modes_with_a_port(mode):
    service = of("Service").get(mode)
    assert (service is not None) == MODES[mode].serves
    if service:
        assert service["spec"]["selector"].items() <= labels(mode).items()


@modes
def test_the_network_lets_in_people_and_prometheus_where_there_is_something_for_them(
    mode,
):
    policies = {
        d["metadata"]["name"]: d["spec"] for d in BASE if d["kind"] == "NetworkPolicy"
    }

    def open_to(name: str) -> bool:
        return (
            policies[name]["podSelector"]["matchLabels"].items() <= labels(mode).items()
        )

    assert open_to("millrace"), "nothing is closed to it"
    assert "ingress" not in policies["millrace"]
    assert open_to("millrace-web") == MODES[mode].admin
    assert open_to("millrace-metrics") == MODES[mode].api
