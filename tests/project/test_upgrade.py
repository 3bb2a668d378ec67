"""One process migrates; a schema that it must not touch is refused, with what to do."""

import threading
from datetime import timedelta
from unittest.mock import Mock

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection

from project import upgrade
from tests.waiting import wait_until
from workqueue import schema

READY = schema.Schema(missing=(), newer=(), partial=())


def found(monkeypatch, *, missing=(), newer=(), partial=()):
    there = schema.Schema(missing=missing, newer=newer, partial=partial)
    monkeypatch.setattr(schema, "look", lambda: there)


@pytest.fixture
def migrated(monkeypatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(upgrade, "_migrate_here", lambda: calls.append("here") or "")
    monkeypatch.setattr(
        upgrade,
        "_migrate_elsewhere",
        lambda env: calls.append(env["DATABASE_URL"]) or "",
    )
    return calls


@pytest.mark.django_db(transaction=True)
def test_nothing_is_migrated_where_nothing_is_missing(migrated):
    upgrade.upgrade(environment={})
    assert migrated == []


@pytest.mark.django_db(transaction=True)
def test_what_is_missing_is_applied(monkeypatch, migrated):
    found(monkeypatch, missing=("audit.0009_x",))
    upgrade.upgrade(environment={})
    assert migrated == ["here"]


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
def test_a_direct_address_is_used_for_migrations(monkeypatch, migrated, settings):
    found(monkeypatch, missing=("audit.0009_x",))
    settings.DATABASE_DIRECT_URL = "postgresql://direct/db"
    upgrade.upgrade(environment={"DATABASE_URL": "postgresql://pooler/db"})
    assert migrated == ["postgresql://direct/db"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (
            {"newer": ("audit.0099_x",)},
            "the database was migrated by a newer release (audit.0099_x is unknown here)",
        ),
        (
            {"partial": ("audit.0001_initial is half there",)},
            "the schema was applied in part: audit.0001_initial",
        ),
    ],
    ids=["newer", "partial"],
)
def test_a_schema_that_must_not_be_touched_is_refused_with_what_to_do(
    monkeypatch, migrated, difference, said
):
    found(monkeypatch, missing=("audit.0009_x",), **difference)
    with pytest.raises(upgrade.Refused) as refused:
        upgrade.upgrade(environment={})
    assert said in str(refused.value)
    assert "To recover:" in str(refused.value)
    assert refused.value.exit_code == 78
    assert migrated == []


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_fails_says_so_and_how_to_go_on(monkeypatch):
    found(monkeypatch, missing=("audit.0009_x",))
    monkeypatch.setattr(upgrade, "_migrate_here", lambda: "column exists")
    with pytest.raises(
        upgrade.Refused, match="a migration failed: column exists"
    ) as refused:
        upgrade.upgrade(environment={})
    assert refused.value.exit_code == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_direct_address_that_does_not_answer_is_refused_in_one_line(settings):
    settings.DATABASE_DIRECT_URL = "postgresql://a:secret@127.0.0.1:1/b"
    with pytest.raises(upgrade.Refused) as refused:
        upgrade.upgrade(environment={})
    [line] = str(refused.value).splitlines()
    assert line.startswith("the database of DATABASE_DIRECT_URL does not answer: ")
    assert "secret" not in line
    assert refused.value.exit_code == 69


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_direct_address_that_the_server_refuses_is_named_as_wrong(
    monkeypatch, settings
):
    answer = 'connection failed: FATAL:  password authentication failed for user "a"'
    refuse = Mock(side_effect=psycopg.OperationalError(answer))
    monkeypatch.setattr(psycopg, "connect", refuse)
    settings.DATABASE_DIRECT_URL = "postgresql://a:secret@127.0.0.1:1/b"
    with pytest.raises(
        upgrade.Refused, match="DATABASE_DIRECT_URL is wrong: the server says"
    ) as refused:
        upgrade.upgrade(environment={})
    assert refused.value.exit_code == 78


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_server_that_stops_while_the_lock_is_waited_for_is_told_as_that(monkeypatch):
    def stop(direct: psycopg.Connection) -> bool:
        direct.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return False

    monkeypatch.setattr(upgrade, "_try_advisory", stop)
    with pytest.raises(
        upgrade.Refused, match="the database of DATABASE_URL does not answer: "
    ) as refused:
        upgrade.upgrade(environment={})
    assert refused.value.exit_code == 69


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_of_two_processes_one_waits_until_the_other_has_migrated(monkeypatch):
    inside, go_on, order = threading.Event(), threading.Event(), []

    def first() -> None:
        with upgrade._lock():
            order.append("first")
            inside.set()
            assert go_on.wait(10)
            order.append("first is done")

    def second() -> None:
        with upgrade._lock():
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    monkeypatch.setattr(upgrade, "SAY_AFTER", 0.0)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    wait_until(lambda: not any(t.is_alive() for t in threads), what="both")
    assert order == ["first", "first is done", "second"]


@pytest.mark.once
@pytest.mark.parametrize(
    "answer",
    [
        'connection failed: FATAL:  password authentication failed for user "a"',
        'connection failed: FATAL:  database "b" does not exist',
        'connection is bad: invalid sslmode value: "banana"',
    ],
)
def test_a_server_that_refuses_is_not_waited_for(monkeypatch, settings, answer):
    settings.DATABASE_WAIT = timedelta(hours=1)

    def cursor():
        raise OperationalError(answer)

    monkeypatch.setattr(connection, "cursor", cursor)
    with pytest.raises(
        upgrade.Refused, match="DATABASE_URL is wrong: the server says"
    ) as refused:
        upgrade.wait_for_database()
    assert refused.value.exit_code == 78


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "connection to server failed: Connection refused\n\tIs the server running?",
            "connection to server failed: Connection refused",
        ),
        ('one\nFATAL:  database "x" is away', 'FATAL:  database "x" is away'),
        ("", "OperationalError"),
    ],
)
def test_of_what_the_driver_says_the_telling_line_is_kept(text, said):
    assert upgrade.said_by(OperationalError(text)) == said


def test_a_file_that_is_no_database_is_refused_in_one_line(monkeypatch):
    broken = DatabaseError("file is not a database")
    monkeypatch.setattr(upgrade.connection, "cursor", Mock(side_effect=broken))
    with pytest.raises(upgrade.Refused, match="DATABASE_URL is wrong: file is not a"):
        upgrade.wait_for_database()
