"""A laptop's secrets: made once, for the owner's eyes, and never half written."""

import stat
import threading

import pytest

from project import private

pytestmark = pytest.mark.once


def test_the_values_are_made_once_and_only_the_owner_may_read_them(tmp_path):
    first = private.values(tmp_path)
    assert private.values(tmp_path) == first
    assert len(first["SECRET_KEY"]) >= 50
    assert len(first["ADMINISTRATOR_PASSWORD"]) >= 16
    assert stat.S_IMODE((tmp_path / private.NAME).stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [private.NAME]


def test_of_many_processes_that_start_at_once_all_have_the_same_values(tmp_path):
    found = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait(10)
        found.append(private.values(tmp_path)["SECRET_KEY"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_folder_that_is_not_there_does_not_stop_a_command(tmp_path):
    assert private.values(tmp_path / "nowhere")["SECRET_KEY"]
