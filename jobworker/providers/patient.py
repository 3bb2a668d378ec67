"""patient: ride out a restart of the database between two programs of a job.

What is decorated is done again from its beginning, so it must be safe to repeat.
"""

import functools
import logging
import threading
from collections.abc import Callable
from typing import Any, cast

from django.db import InterfaceError, OperationalError, connections

from audit import clock
from jobworker.context import JobContext

logger = logging.getLogger(__name__)

AWAY = 300.0  # seconds that are waited for the database
LOOK_AGAIN = 0.5  # seconds


def patiently[T](ask: Callable[[], T], *, go_on: Callable[[], bool]) -> T:
    """The answer; asked again while the database is away, as long as `go_on()`."""
    until = clock.steady() + AWAY
    pause = threading.Event()
    while True:
        try:
            return ask()
        except (OperationalError, InterfaceError) as problem:
            if clock.steady() > until or not go_on():
                raise
            text = " ".join(str(problem).split())[:300]
            logger.warning("the database is away, waiting for it: %s", text)
            connections.close_all()
        pause.wait(LOOK_AGAIN)


def patient[F: Callable[..., Any]](function: F) -> F:
    """A function of a job that waits for the database; its first argument is the ctx."""

    @functools.wraps(function)
    def patiently_done(ctx: JobContext, *args: Any, **kwargs: Any) -> Any:
        return patiently(
            lambda: function(ctx, *args, **kwargs),
            go_on=lambda: clock.steady() < ctx.kill_at,
        )

    return cast(F, patiently_done)
