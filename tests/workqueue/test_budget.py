"""The connections that all processes may open, whatever their reports look like."""

import pytest

from tests import factories
from workqueue import budget, connections

NEED = connections.ROLES


def test_a_process_counts_what_it_reports():
    assert budget.may_open("worker", {"connections": connections.report()}) > 0
    said = {"connections": {"pool": 14, "outside": 1}}
    assert budget.may_open("worker", said) == 15


@pytest.mark.parametrize(
    "report",
    [{}, None, [], {"connections": 3}, {"connections": {"pool": None, "outside": 3}}],
)
def test_one_that_has_not_said_counts_what_its_kind_needs(report):
    assert budget.may_open("server", report) == 2 + 2 + budget.OUTSIDE
    assert budget.may_open("future kind", report) == 5 + 5 + budget.OUTSIDE


@pytest.mark.django_db
def test_only_those_alive_count():
    factories.node("server")
    factories.node("worker", report={"connections": {"pool": 4, "outside": 3}})
    factories.node("worker", status="stopped")
    assert budget.wanted() == 7 + 7
