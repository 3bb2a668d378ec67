"""Each check says what will hurt and what to type; none is raised where nothing is wrong."""

import pytest

from jobworker import connection_budget
from project import checks
from tests import factories
from workqueue import budget

pytestmark = pytest.mark.once


def ids(messages) -> list[str]:
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


def test_a_misspelt_variable(monkeypatch):
    assert ids(checks.check_names()) == []
    monkeypatch.setenv("WORKER_DRAIN_TIMEOUT", "5")
    (message,) = checks.check_names()
    assert message.id == "project.W001"
    assert "WORKER_DRAIN_TIMEOUT " in message.msg


def test_sqlite_in_production(settings):
    settings.SQLITE = True
    assert ids(checks.check_database()) == ["project.W002"]
    settings.SQLITE = False
    assert ids(checks.check_database()) == []


def test_links_that_lead_nowhere(settings):
    assert ids(checks.check_address()) == ["project.W003"]
    settings.BASE_URL_IS_SET = True
    assert ids(checks.check_address()) == []


@pytest.mark.parametrize(
    ("size", "overflow", "found"),
    [(2, 2, ["project.W004"]), (2, 3, []), (None, None, [])],
)
def test_a_pool_that_leaves_nothing_for_items(settings, size, overflow, found):
    settings.SQLITE = False
    settings.DB_POOL_SIZE, settings.DB_MAX_OVERFLOW = size, overflow
    assert ids(checks.check_pool()) == found


@pytest.mark.django_db
def test_more_connections_than_the_server_offers(settings, monkeypatch):
    settings.SQLITE = False
    factories.node(report={"connections": {"pool": 14, "outside": 3}})
    factories.node(report={})
    factories.node(status="stopped", report={"pool": 500})
    for there, found in ((54, []), (53, ["project.W005"])):
        monkeypatch.setattr(
            connection_budget, "_server", lambda there=there: (there, 9)
        )
        assert ids(checks.check_budget(databases=["default"])) == found
    assert checks.check_budget(databases=None) == []


@pytest.mark.django_db
def test_one_container_in_mode_all_fits_a_server_of_the_usual_size_and_two_do_not(
    settings, monkeypatch
):
    """The arithmetic of docs/job-worker.md: 2 x 13 + 7 + 17 + 13 = 63."""
    settings.SQLITE = False
    monkeypatch.setattr(connection_budget, "_server", lambda: (100, 9))
    for found in ([], ["project.W005"]):
        for kind in ("web", "web", "server", "worker", "jobworker"):
            factories.node(kind, report={})
        assert ids(checks.check_budget(databases=["default"])) == found
    assert budget.wanted() == 2 * 63
