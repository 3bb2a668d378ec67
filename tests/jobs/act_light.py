"""A job that does what its parameter tells it: "log:3", "sleep:60", "busy:5", "raise:ValueError" ..."""

import builtins
import logging
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from jobworker.context import JobContext
from jobworker.exceptions import JobFailed, Stopped
from jobworker.params import param
from jobworker.providers.process import environment, run_program
from workqueue.context import Outcome

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    does: str = param("What to do.", default="")
    lock: str = param("What no other may work on.", default="")


def subject(params: Params) -> str:
    return params.does


def lock(params: Params) -> str:
    return params.lock


def run(ctx: JobContext, params: Params) -> Outcome:
    summaries = []
    for step in params.does.split(";"):
        verb, _, value = step.partition(":")
        if verb:
            summaries.append(DOES[verb](ctx, value))
    return Outcome(changed=1, summary="; ".join(filter(None, summaries)))


def _log(ctx: JobContext, value: str) -> str:
    count, _, per_second = value.partition("@")
    rate = float(per_second or 0)
    began = time.monotonic()
    for number in range(1, int(count) + 1):
        ctx.log(f"line {number}")
        if rate and (ahead := number / rate - (time.monotonic() - began)) > 0:
            time.sleep(ahead)
        ctx.check_cancel()
    return f"wrote {count} lines"


def _sleep(ctx: JobContext, value: str) -> str:
    ctx.sleep(float(value))
    return f"slept {value} s"


def _busy(ctx: JobContext, value: str) -> str:
    """Work without waiting for the outside: keeps its weight."""
    until = time.monotonic() + float(value)
    while time.monotonic() < until:
        ctx.check_cancel()
        time.sleep(0.02)
    return f"worked {value} s"


def _deaf(_: JobContext, value: str) -> str:
    time.sleep(float(value))
    return "heard nothing"


def _raise(_: JobContext, value: str) -> str:
    raise getattr(builtins, value)("as it was told")


def _fail(_: JobContext, value: str) -> str:
    raise JobFailed(value, code="told")


def _phase(ctx: JobContext, value: str) -> str:
    ctx.phase(value)
    return ""


def _progress(ctx: JobContext, value: str) -> str:
    ctx.progress(float(value))
    return ""


def _ref(ctx: JobContext, value: str) -> str:
    ctx.save_ref({"what": value, "then": "it continues at the provider"})
    return ""


def _result(ctx: JobContext, value: str) -> str:
    ctx.save_result({"made": value})
    return ""


def _say(ctx: JobContext, value: str) -> str:
    logger.info("%s", value)
    return ""


def _program(ctx: JobContext, value: str) -> str:
    """An external program that works for a long time, under the guard."""
    sleep = shutil.which("sleep") or "/bin/sleep"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        ended = run_program(
            ctx,
            [sleep, value],
            cwd=home,
            env=environment(home=home),
            on_line=ctx.log,
            patience_s=5,
        )
    if ended.told:
        raise Stopped(f"sleep {ended.words}")
    return f"sleep {ended.words}"


DOES = {
    "program": _program,
    "log": _log,
    "sleep": _sleep,
    "busy": _busy,
    "deaf": _deaf,
    "raise": _raise,
    "fail": _fail,
    "phase": _phase,
    "progress": _progress,
    "ref": _ref,
    "result": _result,
    "say": _say,
}
