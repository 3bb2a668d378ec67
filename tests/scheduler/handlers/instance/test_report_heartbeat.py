import json
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from scheduler.handlers.instance import report_heartbeat
from scheduler.timetable import HEARTBEAT_SET
from tests import factories
from workqueue.context import Context
from workqueue.models import Tenant

type Make = Callable[..., Context]


def test_the_report_is_one_post_with_exactly_these_keys_and_the_token(
    ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    settings.HEARTBEAT_TOKEN = "s3cret"

    outcome = report_heartbeat.run(ctx())

    [(path, headers, body)] = receiver.got
    assert set(json.loads(body)) == {
        "instance_id",
        "version",
        "started_at",
        "leader",
        "replicas_alive",
        "queue_depth",
        "oldest_pending_s",
        "failed_24h",
        "db",
    }
    assert path == "/ping/0b5f-secret"
    assert headers["Authorization"] == "Bearer s3cret"
    assert headers["Content-Type"] == "application/json"
    assert (outcome.word, outcome.changed) == ("succeeded", 1)
    assert "0b5f-secret" not in outcome.summary


def test_no_name_of_a_tenant_a_user_or_a_host_leaves_the_installation(
    ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    acme = factories.tenant("acme-corporation", name="Acme Corporation")
    factories.user("jane.doe", email="jane@acme.example")
    factories.node(host="janes-laptop")
    factories.item(acme)

    report_heartbeat.run(ctx())

    [(_, headers, body)] = receiver.got
    sent = body.decode() + json.dumps(headers)
    for private in ("acme", "Acme", "jane", "laptop", socket.gethostname()):
        assert private not in sent


def test_without_a_token_no_authorization_is_sent(
    ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url

    report_heartbeat.run(ctx())

    assert "Authorization" not in receiver.got[0][1]


def test_the_ping_style_says_start_then_alive_with_the_same_run_id(
    ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    settings.HEARTBEAT_STYLE = "ping"
    attempt = ctx()

    outcome = report_heartbeat.run(attempt)

    assert receiver.paths == ["/ping/0b5f-secret/start", "/ping/0b5f-secret"]
    ids = [parse_qs(urlsplit(path).query)["rid"] for path, _, _ in receiver.got]
    assert ids == [[str(attempt.claim_id)]] * 2
    assert b"queue depth: 0" in receiver.got[1][2]
    assert outcome.word == "succeeded"


def test_the_ping_style_says_fail_and_why_when_the_figures_cannot_be_read(
    ctx: Make, receiver: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    settings.HEARTBEAT_STYLE = "ping"

    def broken(**_: Any) -> None:
        raise RuntimeError("the tables are gone")

    monkeypatch.setattr(report_heartbeat, "measure", broken)

    with pytest.raises(RuntimeError, match="the tables are gone"):
        report_heartbeat.run(ctx())

    assert receiver.paths == ["/ping/0b5f-secret/start", "/ping/0b5f-secret/fail"]
    assert receiver.got[1][2] == b"RuntimeError: the tables are gone"


@pytest.mark.parametrize("body", [b"OK (not found)", b"OK (rate limited)"])
def test_a_ping_that_was_thrown_away_is_a_failure_whatever_its_status(
    body: bytes, ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    settings.HEARTBEAT_STYLE = "ping"
    receiver.body = body

    outcome = report_heartbeat.run(ctx())

    assert outcome.word == "failed"
    assert outcome.error.endswith(f"answered 200: {body.decode()}")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_refusal_is_this_runs_failure_with_what_was_said(
    status: int, ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    receiver.status, receiver.body = status, b"no such instance"

    outcome = report_heartbeat.run(ctx())

    assert outcome.word == "failed"
    assert outcome.error.endswith(f"answered {status}: no such instance")
    assert "0b5f-secret" not in outcome.error
    assert outcome.again_in is None


def test_a_redirect_names_the_variable_to_correct(
    ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    receiver.status, receiver.headers = 301, {"Location": "/other"}

    outcome = report_heartbeat.run(ctx())

    assert "correct HEARTBEAT_URL" in outcome.error
    assert len(receiver.got) == 1


def test_nobody_listening_is_a_failure_that_names_the_host(
    ctx: Make, settings: Any
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings.HEARTBEAT_URL = f"http://127.0.0.1:{port}/ping/secret"

    outcome = report_heartbeat.run(ctx())

    assert outcome.error == f"no connection to 127.0.0.1:{port}: connection refused"


def test_an_address_that_is_not_set_makes_no_item_and_the_tick_says_why(
    db: None, settings: Any, receiver: Any
) -> None:
    settings.HEARTBEAT_URL = ""
    now = None
    holds = HEARTBEAT_SET.holds(now)  # type: ignore[arg-type]
    assert not Tenant.objects.filter(holds).exists()
    assert HEARTBEAT_SET.reason == "HEARTBEAT_URL is not set"

    settings.HEARTBEAT_URL = receiver.url
    holds = HEARTBEAT_SET.holds(now)  # type: ignore[arg-type]
    assert Tenant.objects.filter(holds, is_platform=True).exists()
    assert list(report_heartbeat.due(now)) == [factories.platform().pk]  # type: ignore[arg-type]


def test_a_run_without_an_address_skips_and_says_so(ctx: Make, settings: Any) -> None:
    settings.HEARTBEAT_URL = ""

    outcome = report_heartbeat.run(ctx())

    assert outcome.summary == "skipped: HEARTBEAT_URL is not set"
    assert (outcome.word, outcome.skipped) == ("succeeded", 1)


def test_the_oldest_waiting_item_is_reported_with_its_age(
    ctx: Make, receiver: Any, settings: Any
) -> None:
    settings.HEARTBEAT_URL = receiver.url
    attempt = ctx()
    acme = factories.tenant()
    factories.item(acme, "a.a", not_before=attempt.now - timedelta(seconds=90))
    factories.item(acme, "a.b", not_before=attempt.now - timedelta(seconds=10))
    factories.item(acme, "a.c", not_before=attempt.now + timedelta(hours=1))

    report_heartbeat.run(attempt)

    sent = json.loads(receiver.got[0][2])
    assert (sent["queue_depth"], sent["oldest_pending_s"]) == (2, 90)
