"""Is the container well? By port where the mode has one, by its beat where not."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from project import health
from project.modes import MODES

pytestmark = pytest.mark.once
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a container's own network


@pytest.fixture
def web():
    """A web process that says what the test wants."""
    said = {"status": 200, "text": "ok\n", "path": ""}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said["path"] = self.path
            self.send_response(said["status"])
            self.end_headers()
            self.wfile.write(said["text"].encode())

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server.server_address[1], said
    server.shutdown()
    thread.join()
    server.server_close()


def code_of(monkeypatch, mode: str, **values: object) -> int:
    """The exit code of `python -m project.health`."""
    for name, value in {"FALCON_MODE": mode, **values}.items():
        monkeypatch.setattr(health.settings, name, value)
    with pytest.raises(SystemExit) as ended:
        health.main()
    return int(ended.value.code)


@pytest.mark.parametrize("bind", [EVERYWHERE, "127.0.0.1"])
def test_a_mode_with_a_port_is_well_once_it_was_ready(monkeypatch, web, bind, capsys):
    port, said = web
    assert code_of(monkeypatch, "all", BIND=bind, PORT=port) == 0
    assert said["path"] == "/startupz"
    assert capsys.readouterr().out == "ok\n"


def test_it_says_what_is_missing(monkeypatch, web, capsys):
    port, said = web
    said.update(status=503, text="3 migrations are not applied\n")
    assert code_of(monkeypatch, "web", BIND=EVERYWHERE, PORT=port) == 1
    assert capsys.readouterr().out == "3 migrations are not applied\n"


def test_nobody_who_answers_is_unwell(monkeypatch, capsys):
    assert code_of(monkeypatch, "api", BIND="127.0.0.1", PORT=1) == 1
    assert "nothing answers on 127.0.0.1, port 1" in capsys.readouterr().out


@pytest.mark.parametrize(("worker", "container"), [(0, 0), (1, 1), (69, 0)])
def test_a_mode_without_a_port_is_as_well_as_its_beat_and_a_lost_database_blames_nobody(
    monkeypatch, worker, container
):
    asked = []

    def run(command, **_):
        asked.append(command[-2:])
        return type("Result", (), {"returncode": worker})

    monkeypatch.setattr(health.subprocess, "run", run)
    without = [name for name, mode in MODES.items() if not mode.serves]
    for mode in without:
        assert code_of(monkeypatch, mode) == container
    assert asked == [["workerhealth", f"--kind={mode}"] for mode in without]
