"""What a listener waits on: it hears, it writes nothing, it leaves nothing behind."""

import socket
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests import factories
from tests.waiting import wait_until
from workqueue import sources
from workqueue.sources import Channel, Datagrams, DataVersion

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.sqlite
def test_sqlites_version_changes_with_commits_of_others_only() -> None:
    source = DataVersion(str(connection.settings_dict["NAME"]))
    source.open()
    try:
        assert not source.heard()
        factories.tenant()
        assert source.heard()
        assert not source.heard()
        assert source._connection is not None
        with pytest.raises(Exception, match="readonly"):
            source._connection.execute("CREATE TABLE x (y)")
        assert not source.heard()
    finally:
        source.close()
    assert not source.heard()


@pytest.mark.sqlite
def test_a_database_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    source = DataVersion(str(tmp_path / "no?ne%.sqlite3"))
    with pytest.raises(Exception, match="unable to open"):
        source.open()
    source.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgresql
def test_a_channel_hears_each_notification_once() -> None:
    source = Channel("millrace test")
    source.open()
    try:
        assert not source.heard()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_notify('millrace test', ''), pg_notify('other', '')"
            )
        wait_until(source.heard, within=5)
        assert not source.heard()
    finally:
        source.close()
    assert source.descriptor() is None


@pytest.mark.once
def test_datagrams_reach_everybody_in_the_folder(tmp_path: Path) -> None:
    one, other = Datagrams(str(tmp_path)), Datagrams(str(tmp_path))
    one.open()
    other.open()
    sources.send_datagrams(str(tmp_path))
    sources.send_datagrams(str(tmp_path))
    assert one.heard()
    assert other.heard()
    assert not one.heard()
    one.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_the_socket_of_a_process_that_was_killed_is_cleared_away(
    tmp_path: Path,
) -> None:
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(tmp_path / f"1-x{sources.SUFFIX}"))
    dead.close()
    alive = Datagrams(str(tmp_path))
    alive.open()
    sources.send_datagrams(str(tmp_path))
    assert alive.heard()
    assert len(list(tmp_path.iterdir())) == 1
    alive.close()


@pytest.mark.once
def test_a_full_socket_and_a_folder_that_is_gone_are_no_error(tmp_path: Path) -> None:
    slow = Datagrams(str(tmp_path))
    slow.open()
    for _ in range(1000):
        sources.send_datagrams(str(tmp_path))
    assert slow.heard()
    slow.close()
    sources.send_datagrams(str(tmp_path / "gone"))


@pytest.mark.parametrize("listen", [True, False])
@pytest.mark.parametrize("folder", [True, False])
def test_there_is_one_way_per_database_and_sockets_where_there_is_no_listen(
    settings: Any, tmp_path: Path, listen: bool, folder: bool
) -> None:
    settings.DATABASE_LISTEN = listen
    settings.WAKE_SOCKET = str(tmp_path) if folder else ""
    found = {type(source).__name__ for source in sources.present("millrace")}
    sockets = {"Datagrams"} if folder else set()
    if connection.vendor == "postgresql":
        assert found == ({"Channel"} if listen else sockets)
        assert sources.by_database() is listen
    else:
        assert found == {"DataVersion"} | sockets
        assert not sources.by_database()
