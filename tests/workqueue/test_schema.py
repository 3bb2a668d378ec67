"""What separates a database from this release, and who waits for whom."""

import logging
import threading

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder

from workqueue import schema


def applied() -> MigrationRecorder:
    return MigrationRecorder(connection)


@pytest.mark.django_db
def test_a_migrated_database_is_ready():
    found = schema.look()
    assert found == schema.Schema(missing=(), newer=(), partial=())
    assert found.ready


@pytest.mark.django_db
def test_a_migration_that_is_missing_is_named():
    applied().record_unapplied("workqueue", "0002_platform_tenant")
    found = schema.look()
    assert "workqueue.0002_platform_tenant" in found.missing
    assert not found.ready


@pytest.mark.django_db
def test_what_a_newer_release_applied_is_named_and_no_reason_to_wait():
    applied().record_applied("scheduler", "0099_from_the_future")
    found = schema.look()
    assert found.newer == ("scheduler.0099_from_the_future",)
    assert found.ready


@pytest.mark.django_db
def test_other_peoples_tables_are_none_of_our_business():
    applied().record_applied("somebody_elses", "0001_initial")
    assert schema.look().newer == ()


@pytest.mark.django_db
def test_a_table_without_its_record_is_a_schema_in_parts():
    applied().record_unapplied("scheduler", "0002_lease_row")
    applied().record_unapplied("scheduler", "0001_initial")
    found = schema.look()
    assert (
        "scheduler.0001_initial is not recorded as applied, yet its table scheduler_masterlease exists"
        in (found.partial)
    )
    assert not found.ready


@pytest.mark.django_db
def test_a_record_without_the_one_before_it_is_a_schema_in_parts():
    applied().record_unapplied("workqueue", "0001_initial")
    assert any(
        "before its dependency" in sentence for sentence in schema.look().partial
    )


@pytest.mark.django_db(transaction=True)
def test_who_waits_says_for_what_and_goes_on_when_it_is_there(caplog, monkeypatch):
    monkeypatch.setattr(schema, "LOOK_EVERY", 0.01)
    asked = []

    def look() -> schema.Schema:
        asked.append(1)
        if len(asked) == 1:
            raise DatabaseError("connection refused\nDETAIL: of no use")
        missing = ("audit.0002_x",) if len(asked) < 4 else ()
        return schema.Schema(missing=missing, newer=(), partial=())

    monkeypatch.setattr(schema, "look", look)
    with caplog.at_level(logging.INFO):
        assert schema.wait(stop=threading.Event())
    assert caplog.messages == [
        "waiting for the database: it does not answer (connection refused)",
        "waiting for the database: 1 migrations are not applied yet, the first is audit.0002_x; "
        "`start` in mode all or api applies them",
        "the schema is ready: going on",
    ]


@pytest.mark.django_db(transaction=True)
def test_who_is_told_to_stop_waits_no_longer(monkeypatch):
    stop = threading.Event()
    found = schema.Schema(missing=("audit.0002_x",), newer=(), partial=())

    def look() -> schema.Schema:
        stop.set()
        return found

    monkeypatch.setattr(schema, "look", look)
    assert schema.wait(stop=stop) is False
