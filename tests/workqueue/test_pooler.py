"""Whether somebody stands between us and PostgreSQL. Behind a real pooler: tests/races/test_pooler.py."""

from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from workqueue import connections, pooler

pytestmark = pytest.mark.django_db


def test_without_a_pooler_there_is_no_trouble() -> None:
    assert pooler.trouble() == ""


@pytest.mark.postgresql
def test_whoever_said_so_is_not_asked_again(settings: Any) -> None:
    settings.DATABASE_LISTEN = False
    with patch.object(connections, "plain", side_effect=AssertionError("asked")):
        assert pooler.trouble() == ""


@pytest.mark.postgresql
def test_a_database_that_is_away_is_no_pooler() -> None:
    with patch.object(connections, "plain", side_effect=psycopg.OperationalError):
        assert pooler.trouble() == ""


@pytest.mark.postgresql
def test_one_session_for_two_clients_is_told_with_what_to_set() -> None:
    asked = {pooler.sql.SERVER_PROCESS: 1, pooler.sql.MARK: None}
    with patch.object(pooler, "_ask", side_effect=lambda _, what: asked[what]):
        trouble = pooler.trouble()
    assert "DATABASE_LISTEN=off" in trouble
    assert "DATABASE_DIRECT_URL" in trouble
