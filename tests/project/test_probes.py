"""Probes answer to machines: to any host, without session, and say why not."""

import pytest
from django.db import DatabaseError, connection

from project import probes
from workqueue import schema

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def not_yet_ready(monkeypatch):
    monkeypatch.setattr(probes, "_schema_ready", False)


def broken(*_, **__):
    raise DatabaseError("away")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/startupz"])
def test_a_probe_answers_to_any_host_without_tls_and_session(client, settings, path):
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get(path, headers={"host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert not answer.cookies
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_head_is_answered_without_a_body(client, path):
    answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


def test_nothing_but_reading_is_allowed(client):
    assert client.post("/livez").status_code == 405


def test_alive_needs_no_database(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/livez").status_code == 200


def test_not_ready_without_a_database(client, monkeypatch):
    monkeypatch.setattr(schema, "look", broken)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (
        503,
        b"the database does not answer\n",
    )
    assert client.get("/livez").status_code == 200


def test_not_ready_when_the_database_went_away_later(client, monkeypatch):
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(connection, "cursor", broken)
    assert client.get("/readyz").status_code == 503
    assert client.get("/startupz").status_code == 200


def test_not_ready_until_the_migrations_are_applied(client, monkeypatch):
    missing = schema.Schema(missing=("audit.0002_x",), newer=(), partial=())
    monkeypatch.setattr(schema, "look", lambda: missing)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (
        503,
        b"1 migrations are not applied\n",
    )
    assert client.get("/startupz").status_code == 503


def test_not_ready_while_the_installation_stops(client, settings, tmp_path):
    settings.WAKE_SOCKET = str(tmp_path)
    assert client.get("/readyz").status_code == 200
    (tmp_path / probes.DRAINING).touch()
    assert client.get("/readyz").status_code == 503
    assert client.get("/livez").status_code == 200
