"""The connection budget as a page."""

from typing import Any

import pytest
from django.test import Client

from jobworker import connection_budget
from tests import factories, screens
from tests.jobworker.screening import worker
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db
PAGE = "/admin/connections/"


def text(response: Any) -> str:
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server with so many connections."""

    def serves(maximum: int) -> None:
        monkeypatch.setattr(connection_budget, "_server", lambda: (maximum, 7))

    return serves


def test_processes_are_summed_against_what_the_server_leaves(boss: Client, server: Any):
    server(100)
    worker()
    factories.node("web", report={"connections": {"pool": 8, "outside": 1}})
    html = text(boss.get(PAGE))
    assert "They may open 22 of the 80 that are theirs" in html
    assert "<code>max_connections</code> 100 less 20" in html
    assert "58 are spare" in html
    assert "costs nothing in total" in html


def test_it_warns_before_the_limit_and_alarms_beyond_it(boss: Client, server: Any):
    worker()  # 13
    server(34)
    assert "1 connection is spare." in text(boss.get(PAGE))
    server(30)
    html = text(boss.get(PAGE))
    assert "3 connections too few." in html
    assert "Raise <code>max_connections</code>" in html


def test_it_says_what_a_job_worker_lacks_and_where_to_take_it(
    boss: Client, server: Any
):
    worker(caps={"heavy": 2, "medium": 1, "light": 3, "total": 5})
    server(100)
    html = text(boss.get(PAGE))
    assert "runs 3 of 5 jobs awake." in html
    assert "4 connections more: they are spare" in html
    server(34)
    assert "Take them from the web processes" in text(boss.get(PAGE))


def test_it_is_the_platforms(acme: Tenant):
    rights = ("workqueue.view_setting", "workqueue.view_node")
    client = screens.signed_in(screens.staff(acme, *rights))
    assert client.get(PAGE).status_code == 404
