"""Terraform's http backend, over HTTP and against recorded traffic."""

import base64
import hashlib
import json
import logging
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError

from audit.capture import captured_by
from audit.mask import Secret
from jobworker.models import Deployment, Job, TerraformLock, TerraformState
from jobworker.providers import state
from tests.jobworker.rows import deployment
from tests.waiting import wait_until

LOCK = {"ID": "f85e7fbc", "Operation": "OperationTypeApply", "Who": "root@vm"}


class Client:
    """Terraform's side."""

    def __init__(self, env: dict[str, str]) -> None:
        self.address = env["TF_HTTP_ADDRESS"]
        self.auth = (env["TF_HTTP_USERNAME"], env["TF_HTTP_PASSWORD"])

    def ask(
        self, method: str, body: Any = None, query: str = "", **more: Any
    ) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.request(
            method,
            self.address + query,
            content=None if body is None else content,
            **{"auth": self.auth, "timeout": 30, **more},
        )


@pytest.fixture
def held(start: Any) -> Iterator[tuple[Any, Deployment, Client]]:
    ctx = start()
    one = deployment(ctx)
    with state.backend(ctx, one) as env:
        yield ctx, one, Client(env)


def test_a_state_is_absent_then_what_was_written_last(held: Any) -> None:
    _, one, client = held
    assert client.ask("GET").status_code == 404

    for serial in (1, 2):
        body = {"version": 4, "serial": serial, "lineage": "abc"}
        assert client.ask("POST", body).status_code == 200

    answer = client.ask("GET")
    assert (answer.status_code, answer.json()["serial"]) == (200, 2)
    digest = base64.b64encode(
        hashlib.md5(answer.content, usedforsecurity=False).digest()
    ).decode()
    assert answer.headers["Content-MD5"] == digest
    newest = state.newest(one)
    assert newest
    assert (newest.serial, newest.lineage) == (2, "abc")


def test_the_recorded_traffic_gets_the_recorded_answers(
    held: Any, shared: Path
) -> None:
    _, _, client = held
    path = shared / "data" / "terraform" / "http_backend_requests.jsonl"
    for line in path.read_text().splitlines():
        asked = json.loads(line)
        _, sign, query = asked["path"].partition("?")
        body, md5 = asked["body"], asked["headers"].get("Content-Md5")
        if asked["method"] == "POST":  # the recording has its beginning only
            lineage = "3c62977f-3378-4f1a-f9fc-6e6c597caa26"
            assert lineage in body
            body, md5 = json.dumps({"serial": 1, "lineage": lineage}), None
        answer = client.ask(
            asked["method"],
            body.encode() or None,
            query=sign + query,
            headers={"Content-MD5": md5} if md5 else {},
        )
        assert answer.status_code == asked["status"], asked

    assert answer.json()["lineage"] == "3c62977f-3378-4f1a-f9fc-6e6c597caa26"


def test_who_comes_second_is_told_who_holds_the_lock(held: Any) -> None:
    ctx, _, client = held
    assert client.ask("LOCK", LOCK).status_code == 200

    answer = client.ask("LOCK", {"ID": "other"})

    assert (answer.status_code, answer.json()) == (423, LOCK)
    lock = TerraformLock.objects.get()
    assert (lock.job, lock.claim_id) == (ctx.job_id, ctx.claim_id)


def test_a_lock_whose_answer_was_lost_is_given_again(held: Any) -> None:
    _, _, client = held

    assert [client.ask("LOCK", LOCK).status_code for _ in range(2)] == [200, 200]


def test_a_state_is_written_only_under_ones_own_lock(held: Any) -> None:
    _, _, client = held
    client.ask("LOCK", LOCK)

    assert client.ask("POST", {"serial": 1}, "?ID=f85e7fbc").status_code == 200
    for query in ("?ID=other", ""):
        assert client.ask("POST", {"serial": 2}, query).status_code == 409

    assert TerraformState.objects.count() == 1


def test_only_who_holds_a_lock_gives_it_back(held: Any) -> None:
    _, _, client = held
    client.ask("LOCK", LOCK)

    assert client.ask("UNLOCK", {"ID": "other"}).status_code == 409
    assert client.ask("UNLOCK", LOCK).status_code == 200
    assert client.ask("UNLOCK", LOCK).status_code == 200  # the answer was lost
    assert not TerraformLock.objects.exists()


def test_a_damaged_body_is_refused(held: Any) -> None:
    _, _, client = held

    answer = client.ask("POST", {"serial": 1}, headers={"Content-MD5": "AAAA"})

    assert answer.status_code == 400
    assert client.ask("POST", b"no json").status_code == 400
    assert client.ask("POST", b"[1]").status_code == 400
    assert not TerraformState.objects.exists()


@pytest.mark.parametrize(
    "auth", [None, ("job", "wrong"), ("somebody", "{claim}"), ("job", "")]
)
def test_nobody_without_the_claim_is_served(held: Any, auth: Any) -> None:
    ctx, _, client = held
    if auth:
        auth = (auth[0], auth[1].format(claim=ctx.claim_id))

    for method in ("GET", "POST", "LOCK", "UNLOCK"):
        answer = client.ask(method, {} if method != "GET" else None, auth=auth)
        assert answer.status_code == 401


def test_the_body_of_who_has_no_claim_is_not_even_read(held: Any) -> None:
    _, _, client = held
    host, _, port = client.address.split("/")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as stranger:
        stranger.sendall(b"POST /state/1 HTTP/1.1\r\nContent-Length: 199999999\r\n\r\n")
        with stranger.makefile("rb") as answer:
            told = answer.read()  # to its end: the connection is closed

    assert told.startswith(b"HTTP/1.1 401 ")


def test_a_claim_is_good_for_its_deployment_only(held: Any, start: Any) -> None:
    _, _, client = held
    other = deployment(start(), name="other")
    client.address = client.address.rpartition("/")[0] + f"/{other.pk}"

    assert client.ask("GET").status_code == 403
    assert client.ask("POST", {"serial": 1}).status_code == 403


def test_a_job_that_lost_its_claim_can_neither_read_nor_write(held: Any) -> None:
    ctx, _, client = held
    Job.objects.filter(pk=ctx.job_id).update(status=Job.Status.FAILED)

    assert client.ask("GET").status_code == 403
    assert client.ask("POST", {"serial": 1}).status_code == 403
    assert client.ask("LOCK", LOCK).status_code == 403


def test_a_job_that_is_over_is_refused(start: Any) -> None:
    ctx = start()
    with state.backend(ctx, deployment(ctx)) as env:
        client = Client(env)

    assert client.ask("GET").status_code == 401


def test_the_last_twenty_versions_are_kept(held: Any) -> None:
    _, one, client = held
    for serial in range(25):
        client.ask("POST", {"serial": serial})

    kept = TerraformState.objects.filter(deployment=one).order_by("id")
    assert [each.serial for each in kept] == list(range(5, 25))


def test_a_state_is_encrypted_and_its_lines_are_no_secrets(held: Any) -> None:
    from django.db import connection

    ctx, _, client = held
    body = b'{\n  "serial": 1,\n  "terraform_version": "1.11.4",\n "outputs": {"a": {"value": "hunter2-hunter2", "sensitive": true}}\n}'

    client.ask("POST", body)

    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM jobworker_terraformstate")
        assert "terraform_version" not in cursor.fetchone()[0]
    assert client.ask("GET").content == body
    ctx.log('"terraform_version": "1.11.4", password hunter2-hunter2')
    ctx.log("end")
    assert ctx.lines()[:1] == ['"terraform_version": "1.11.4", password ••••']


def test_the_secrets_of_a_state_are_known_to_the_attempt_whose_terraform_wrote_it(
    start: Any,
) -> None:
    ctx, known = start(), set[Secret]()
    output = {"value": "hunter2-hunter2", "sensitive": True}

    with (
        captured_by(lambda *_: None, known),
        state.backend(ctx, deployment(ctx)) as env,
    ):
        Client(env).ask("POST", {"serial": 1, "outputs": {"password": output}})

    assert [secret.forms for secret in known] == [{"hunter2-hunter2"}]


def test_a_terraform_that_hangs_up_leaves_no_traceback(
    held: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    _, _, client = held
    caplog.set_level(logging.DEBUG)
    host, _, port = client.address.split("/")[2].partition(":")
    with socket.create_connection((host, int(port))) as rude:
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        rude.sendall(b"GET /state/1 HTTP/1.1\r\n")

    wait_until(lambda: "a connection for a state ended" in caplog.text, what="its end")
    assert "Traceback" not in capfd.readouterr().err


def test_while_the_database_is_away_a_request_waits(
    held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, client = held
    back, asked = threading.Event(), threading.Event()
    real = state.answer

    def away(method: str, **more: Any) -> state.Answer:
        asked.set()
        if not back.is_set():
            raise OperationalError("the database is being restarted")
        return real(method, **more)

    monkeypatch.setattr(state, "answer", away)
    answers: list[int] = []
    thread = threading.Thread(
        target=lambda: answers.append(client.ask("POST", {"serial": 1}).status_code)
    )
    thread.start()
    assert asked.wait(10)
    assert answers == []

    back.set()

    wait_until(lambda: answers == [200], what="the answer")
    thread.join()
