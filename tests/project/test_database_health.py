"""The database on the overview: what may be opened, who holds vacuum back, what is dead."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection

from audit import clock
from project import database_health as health
from scheduler import servers
from tests import databases, factories

pytestmark = pytest.mark.django_db


def alive() -> list[servers.Process]:
    now = clock.now()
    return servers.processes(servers.mastership(now), now=now)


@pytest.mark.parametrize(
    ("length", "said"),
    [(12, "12 B"), (1_200, "1.2 kB"), (41_000_000_000, "41 GB"), (9_950_000, "9.9 MB")],
)
def test_sizes_have_two_figures(length, said):
    assert health.size(length).replace("\u00a0", " ") == said


@pytest.mark.sqlite
def test_sqlite_says_what_it_is():
    found = health.look([], now=clock.now())
    assert found.name.startswith("SQLite 3.")
    assert (found.budget, found.live, found.holder) == (None, None, None)


@pytest.mark.postgresql
def test_all_processes_together_are_compared_with_what_the_server_offers():
    factories.node("worker", report={"connections": {"pool": 14, "outside": 3}})
    for _ in range(2):
        factories.node(
            "web", host="a", report={"connections": {"pool": 10, "outside": 3}}
        )
    budget = health.look(alive(), now=clock.now()).budget
    assert budget is not None
    assert (budget.wanted, budget.processes) == (43, 3)
    assert budget.limit == budget.maximum - budget.reserved
    assert budget.spare == budget.limit - 43
    assert budget.open >= 1
    assert f"43 of {budget.limit} connections may be opened" in budget.drawn


@pytest.mark.postgresql
def test_the_hot_tables_dead_rows_are_told():
    found = health.look([], now=clock.now())
    assert found.name.startswith("PostgreSQL ")
    assert found.live is not None
    assert not found.bloated


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_the_oldest_transaction_is_named_with_its_pid_and_the_way_to_end_it():
    with psycopg.connect(databases.url(), application_name="a report") as other:
        other.execute("SELECT txid_current(), 'the guilty one'")
        found = health.look([], now=clock.now() + health.LONG + timedelta(seconds=1))
        holder = found.holder
        assert holder is not None
        assert (holder.pid, holder.program) == (other.info.backend_pid, "a report")
        assert "the guilty one" in holder.query
        assert holder.state == "idle in transaction"
        assert holder.cure == f"SELECT pg_terminate_backend({holder.pid})"
        # A transaction of this moment holds nothing back that anybody would notice.
        assert health.look([], now=clock.now()).holder is None
        connection.close()


def test_a_prepared_transaction_and_a_slot_have_their_own_cure():
    def cure(kind: str) -> str:
        return health.Holder(
            kind=kind, pid=None, name="it's", program="", state="", since=None, query="", held=1
        ).cure  # fmt: skip

    assert cure("prepared") == "ROLLBACK PREPARED 'it''s'"
    assert cure("slot") == "SELECT pg_drop_replication_slot('it''s')"
