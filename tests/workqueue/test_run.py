"""Claimed item -> outcome."""

import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from audit import text
from workqueue import connections
from workqueue import run as run_module
from workqueue.attempt import Attempt, Finished
from workqueue.context import Context, Outcome
from workqueue.models import Tenant

Make = Callable[..., Attempt]


def run(attempt: Attempt) -> Finished:
    return run_module.run(attempt, stopping=lambda: False)


def transcript(attempt: Attempt) -> str:
    closed = attempt.transcript.close()
    return closed.short + "\n".join(line.text for line in closed.rest)


def test_a_run_that_returns_its_outcome_succeeded(attempt: Make) -> None:
    finished = run(attempt("log:2"))
    assert (finished.word, finished.outcome.changed, finished.error) == (
        "succeeded",
        1,
        "",
    )
    assert finished.finished_at >= finished.attempt.started_at  # type: ignore[operator]
    assert "line 1" in transcript(finished.attempt)
    assert "line 2" in transcript(finished.attempt)


def test_the_thread_knows_what_it_runs_for_the_lines_of_its_log(attempt: Make) -> None:
    seen = []

    class Asks(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(run_module.claimed_here())

    one, asks = attempt("log:1"), Asks()
    logging.getLogger("tests.handlers.act").addHandler(asks)
    try:
        run(one)
    finally:
        logging.getLogger("tests.handlers.act").removeHandler(asks)
    assert seen == [one.claimed]
    assert run_module.claimed_here() is None


def test_a_secret_that_the_handler_reads_is_known_to_its_attempt(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(_: Context) -> Outcome:
        text.register_secret("correct-horse-battery")
        return Outcome()

    one = attempt()
    monkeypatch.setattr(run_module.registry, "load", lambda _: handler)
    run(one)
    assert [secret.forms for secret in one.transcript.known] == [
        {"correct-horse-battery"}
    ]


@pytest.mark.parametrize(
    ("raised", "named"),
    [
        ("ValueError", "ValueError: wrong"),
        ("SystemExit", "SystemExit: 0"),
        ("SystemExit3", "SystemExit: 3"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("GeneratorExit", "GeneratorExit"),
        ("CancelledError", "CancelledError"),
        ("Unprintable", "Unprintable: "),
        ("Interrupting", "Interrupting: (its text could not be made)"),
        ("TwoArguments", "TwoArguments: a"),
        ("Group", "ExceptionGroup: many"),
        ("Nul", "ValueError: a"),
    ],
)
def test_whatever_a_handler_raises_fails_the_run_with_its_type_named(
    attempt: Make, raised: str, named: str
) -> None:
    finished = run(attempt(f"raise:{raised}"))
    assert finished.word == "failed"
    assert finished.error.startswith(named)
    assert "Traceback" in transcript(finished.attempt)


def test_a_handler_that_returns_no_outcome_failed(attempt: Make) -> None:
    finished = run(attempt("nothing"))
    assert finished.word == "failed"
    assert "returned str; an Outcome was expected" in finished.error


@pytest.mark.parametrize("again", ["5", "'soon'", "1.5", "{}", "False"])
def test_a_handler_that_asks_to_run_again_in_no_time_span_failed(
    attempt: Make, again: str
) -> None:
    finished = run(attempt(f"again-wrongly:{again}"))
    assert finished.word == "failed"
    assert "a timedelta was expected" in finished.error


@pytest.mark.parametrize("way", ["return", "raise"])
def test_a_process_that_a_handler_forked_ends_where_the_handler_does(
    attempt: Make, tmp_path: Path, way: str
) -> None:
    pids = tmp_path / way
    assert run(attempt(f"fork:{pids}")).word == "succeeded"
    [child] = {int(line) for line in pids.read_text().split()}
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("statement", "look", "found"),
    [
        ("SET search_path TO nowhere", "SHOW search_path", '"$user", public'),
        ("SET statement_timeout = '7s'", "SHOW statement_timeout", "0"),
        ("SET TimeZone = 'Asia/Tokyo'", "SHOW TimeZone", "UTC"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SHOW default_transaction_read_only",
            "off",
        ),
        (
            "SELECT set_config('millrace.x', 'y', false)",
            "SELECT COALESCE(current_setting('millrace.x', true), '')",
            "",
        ),
        ("CREATE TEMP TABLE mine (a int)", "SELECT to_regclass('mine')", None),
        (
            "SELECT pg_advisory_lock(4711)",
            "SELECT count(*) FROM pg_locks WHERE objid = 4711",
            0,
        ),
        ("LISTEN something", "SELECT count(*) FROM pg_listening_channels()", 0),
        ("SET statement_timeout = '7s'; BEGIN", "SHOW statement_timeout", "0"),
        ("SET statement_timeout = '7s'+open", "SHOW statement_timeout", "0"),
    ],
)
def test_what_a_handler_did_to_its_session_is_undone_for_who_has_it_next(
    attempt: Make, statement: str, look: str, found: object
) -> None:
    connections.use_pool(kind="worker")
    try:
        assert run(attempt(f"sql:{statement}")).word == "succeeded"
        with connection.cursor() as cursor:
            cursor.execute(look)
            assert cursor.fetchone() == (found,)
    finally:
        connections.use_no_pool()


@pytest.mark.postgresql
def test_the_session_itself_is_kept_for_the_next(attempt: Make) -> None:
    connections.use_pool(kind="worker", wanted=1)
    try:
        sessions = set()
        for seconds in range(7, 10):
            done = run(attempt(f"sql:SET statement_timeout = '{seconds}s'"))
            assert done.word == "succeeded"
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                sessions.add(cursor.fetchone())
            connection.close()
        assert len(sessions) == 1
    finally:
        connections.use_no_pool()


def test_a_handler_that_cannot_be_imported_failed(
    attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(key: str) -> None:
        raise SystemExit("at import")

    monkeypatch.setattr(run_module.registry, "load", broken)
    finished = run(attempt())
    assert (finished.word, finished.error) == ("failed", "SystemExit: at import")


def test_one_bad_record_is_counted_and_the_others_are_handled(attempt: Make) -> None:
    finished = run(attempt("records:a,bad1,b,bad2"))
    assert finished.word == "partial"
    assert (
        finished.outcome.seen,
        finished.outcome.changed,
        finished.outcome.failed,
    ) == (4, 2, 2)
    assert finished.error == "thing bad1: ValueError: bad1 is bad"
    text = transcript(finished.attempt)
    assert "thing bad2: ValueError: bad2 is bad" in text
    assert text.count("Traceback") == 1  # once per type of exception


def test_a_run_in_which_every_record_failed_failed(attempt: Make) -> None:
    assert run(attempt("records:bad1,bad2")).word == "failed"


def test_a_closed_attempt_is_stopped_at_its_next_query(attempt: Make) -> None:
    closed = attempt("hang")
    closed.closed = True
    finished = run(closed)
    assert finished.error.startswith(
        "ClaimLost: This attempt's claim is no longer its own"
    )


def test_record_passes_a_lost_claim_on_instead_of_failing_every_record(
    attempt: Make,
) -> None:
    from workqueue.context import Context
    from workqueue.exceptions import ClaimLost

    ctx = run_module._context(attempt(), lambda: False)
    assert isinstance(ctx, Context)
    with pytest.raises(ClaimLost), ctx.record("thing", 1):
        raise ClaimLost


def test_the_door_is_open_again_after_the_run(attempt: Make) -> None:
    done = attempt()
    run(done)
    done.closed = True
    assert Tenant.objects.exists()


def test_a_transaction_that_a_handler_left_open_is_not_handed_on(
    attempt: Make, acme: Tenant
) -> None:
    finished = run(attempt("open"))
    assert finished.word == "succeeded"
    assert not connection.in_atomic_block
    acme.refresh_from_db()
    assert acme.name != "left open"


def test_a_handler_sees_that_it_should_stop(attempt: Make) -> None:
    stopped = attempt("stopping")
    began = time.monotonic()
    with contextlib.suppress(AssertionError):
        finished = run_module.run(
            stopped, stopping=lambda: time.monotonic() - began > 0.05
        )
    assert finished.word == "succeeded"
