"""act: do what the item's dedup key says: "verb:argument", several with "+".

sleep:SECONDS  raise:TYPE  exit:CODE  log:COUNT  query  die  hang:PAUSE  again:SECONDS
touch:PATH  partial  nothing  wait-stopping  fork:PATH  sql:STATEMENT
again-wrongly:LITERAL
"""

import asyncio
import logging
import os
import signal
import time
from ast import literal_eval
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from workqueue.context import Context, Outcome
from workqueue.models import Tenant

logger = logging.getLogger(__name__)


class Unprintable(Exception):
    """Its text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Interrupting(Exception):
    """Its text ends whoever asks for it."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


class TwoArguments(Exception):
    """Cannot be rebuilt from its args."""

    def __init__(self, a: str, b: str) -> None:
        super().__init__(a)
        self.lock = __import__("threading").Lock()


RAISED: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("wrong"),
    "SystemExit": lambda: SystemExit(0),
    "SystemExit3": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "Unprintable": Unprintable,
    "Interrupting": Interrupting,
    "TwoArguments": lambda: TwoArguments("a", "b"),
    "Group": lambda: ExceptionGroup("many", [ValueError(str(n)) for n in range(1000)]),
    "Nul": lambda: ValueError("a\x00b \udcd1"),
    "Secret": lambda: ValueError("password=hunter2hunter2"),
    "Long": lambda: ValueError("x" * 50_000_000),
}


def run(ctx: Context) -> Outcome:
    """Do each verb in turn."""
    outcome = Outcome(seen=1, changed=1)
    for step in filter(None, ctx.dedup_key.split("+")):
        verb, _, argument = step.partition(":")
        if (result := VERBS[verb](ctx, argument)) is not None:
            outcome = result
    return outcome


def _raise(ctx: Context, argument: str) -> None:
    raise RAISED[argument]()


def _log(ctx: Context, argument: str) -> None:
    for n in range(int(argument)):
        logger.info("line %s", n + 1)


def _touch(ctx: Context, argument: str) -> None:
    with Path(argument).open("a") as mark:
        mark.write(".")


def _hang(ctx: Context, argument: str) -> None:
    """Ignore everything but a query."""
    while True:
        time.sleep(float(argument or 0.02))
        Tenant.objects.exists()


def _leave_transaction(ctx: Context, argument: str) -> None:
    transaction.atomic().__enter__()
    Tenant.objects.filter(slug=ctx.tenant).update(name="left open")


def _fork(ctx: Context, argument: str) -> None:
    """Let the child out of here as well, by the way that is named."""
    child = os.fork()
    with Path(argument).open("a") as pids:
        pids.write(f"{child or os.getpid()}\n")
    if not child and "raise" in argument:
        raise SystemExit(3)


def _execute(ctx: Context, argument: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(argument)


def _wait_stopping(ctx: Context, argument: str) -> None:
    while not ctx.stopping():
        time.sleep(0.01)


def _records(ctx: Context, argument: str) -> Outcome:
    for name in argument.split(","):
        with ctx.record("thing", name):
            if name.startswith("bad"):
                raise ValueError(f"{name} is bad")
            ctx.tally.changed += 1
    return ctx.outcome(f"{ctx.tally.changed} changed")


VERBS: dict[str, Callable[[Context, str], Any]] = {
    "sleep": lambda ctx, argument: time.sleep(float(argument)),
    "raise": _raise,
    "exit": lambda ctx, argument: exec("raise SystemExit(int(argument))"),  # noqa: S102
    "log": _log,
    "query": lambda ctx, argument: Tenant.objects.count() and None,
    "die": lambda ctx, argument: os.kill(os.getpid(), signal.SIGKILL),
    "hang": _hang,
    "again": lambda ctx, argument: Outcome(again_in=timedelta(seconds=float(argument))),
    "touch": _touch,
    "partial": lambda ctx, argument: Outcome(
        seen=2, changed=1, failed=1, error="one failed"
    ),
    "nothing": lambda ctx, argument: "nothing",
    "stopping": _wait_stopping,
    "open": _leave_transaction,
    "records": _records,
    "broken": lambda ctx, argument: (
        connection.cursor().execute("SELECT broken") and None
    ),
    "fork": _fork,
    "sql": _execute,
    "again-wrongly": lambda ctx, argument: Outcome(again_in=literal_eval(argument)),
    "unstorable": lambda ctx, argument: Outcome(seen="many", summary="fine"),
    "progress": lambda ctx, argument: ctx.progress({"percent": int(argument)}),
}
