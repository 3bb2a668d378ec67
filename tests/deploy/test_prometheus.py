"""Alerts and dashboard: whatever they ask for is exported; whatever fires is explained."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from audit import clock
from project import figures
from tests.deploy.files import DEPLOY, ROOT, documents

pytestmark = [pytest.mark.once, pytest.mark.django_db]

ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
RULES: list[dict[str, Any]] = [
    rule
    for one in documents(ALERTS)
    for group in one["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((DEPLOY / "grafana" / "millrace.json").read_text())
QUERIES = [t["expr"] for panel in DASHBOARD["panels"] for t in panel.get("targets", ())]
NAME = re.compile(r"\bmillrace_[a-z_]+")
LABELS = re.compile(r"\bby \(([a-z, ]+)\)")
SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "gauge": ("",),
}


@pytest.fixture
def exported() -> set[str]:
    """Every name that /metrics can give."""
    return {
        f"{family.name}{suffix}"
        for family in figures.read(now=clock.now())
        for suffix in SUFFIXES[family.type]
    }


def test_every_metric_that_an_alert_or_the_dashboard_names_is_exported(exported):
    asked = NAME.findall(" ".join([*QUERIES, *(rule["expr"] for rule in RULES)]))
    # The term's beginning is told once there was one.
    assert set(asked) <= exported | {"millrace_master_since_timestamp_seconds"}


def test_every_metric_is_explained_in_the_documents(exported):
    told = (ROOT / "docs" / "metrics.md").read_text()
    families = {re.sub("_(total|bucket|count|sum)$", "", name) for name in exported}
    assert [name for name in sorted(families) if name not in told] == []


def test_every_alert_is_explained_in_the_documents():
    told = (ROOT / "docs" / "metrics.md").read_text()
    for rule in RULES:
        assert f"`{rule['alert']}`" in told, rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert re.fullmatch(r"\d+[mh]", rule["for"])
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_nothing_is_added_up_across_replicas_which_all_say_the_same():
    """A counter is first the maximum of all instances; only then a sum of handlers."""
    for query in [*QUERIES, *(rule["expr"] for rule in RULES)]:
        for name in NAME.finditer(query):
            before = query[: name.start()]
            assert re.search(
                r"(max(?: by \([a-z, ]+\))? ?\((?:rate|increase)?\(?|absent\()$", before
            ), f"{name[0]} in {query}"


def test_the_dashboard_can_be_imported_anywhere():
    assert DASHBOARD["uid"] == "millrace"
    assert "__inputs" not in DASHBOARD
    panels = [one for one in DASHBOARD["panels"] if one["type"] != "row"]
    assert len({one["id"] for one in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["description"].endswith("."), panel["title"]
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$([a-z]+)", " ".join(QUERIES))) <= variables


def test_no_two_panels_overlap():
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_prometheus_itself_reads_the_alerts_and_they_fire_as_they_should():
    if not (promtool := shutil.which("promtool")):
        pytest.skip(
            "promtool is not on PATH; the expressions are only parsed for names"
        )
    for what in (
        ["check", "rules", str(ALERTS)],
        ["test", "rules", str(DEPLOY / "prometheus" / "alerts.test.yaml")],
    ):
        result = subprocess.run(
            [promtool, *what], capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_scrape_asks_where_the_metrics_are():
    (example,) = documents(DEPLOY / "prometheus" / "scrape.example.yaml")
    (job,) = example["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["authorization"]["type"] == "Bearer"
