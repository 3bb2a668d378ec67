"""instance.report_heartbeat: tell a central service that this installation is alive."""

import logging
from datetime import datetime
from typing import Any

import httpx
from django.conf import settings
from django.db.models import QuerySet

from audit import text
from scheduler.handlers import outbound
from scheduler.handlers.instance.measure import Figures, measure
from workqueue.context import Context, Outcome
from workqueue.models import Tenant

logger = logging.getLogger(__name__)

NOT_SET = "skipped: HEARTBEAT_URL is not set"
# Healthchecks says these with status 200: the signal was thrown away all the same.
THROWN_AWAY = ("OK (not found)", "OK (rate limited)")


def run(ctx: Context) -> Outcome:
    """Report once. Whatever goes wrong is this run's failure; the next tick tries again."""
    if not settings.HEARTBEAT_URL:
        return Outcome(skipped=1, summary=NOT_SET)
    text.register_secret(settings.HEARTBEAT_TOKEN)
    where = outbound.host(settings.HEARTBEAT_URL)
    try:
        if settings.HEARTBEAT_STYLE == "ping":
            figures = _ping(ctx)
        else:
            figures = measure(now=ctx.now)
            _send(settings.HEARTBEAT_URL, ctx=ctx, json=figures.told())
    except outbound.Unreachable as problem:
        logger.error("%s", problem)
        return Outcome(seen=1, failed=1, error=str(problem))
    logger.info("%s knows that this instance is alive", where)
    return Outcome(
        seen=1, changed=1, summary=f"reported to {where}", details=figures.told()
    )


def due(now: datetime) -> "QuerySet[Tenant, int]":
    """The platform, always. Whether there is somebody to report to is the row's condition."""
    return Tenant.objects.filter(is_platform=True).values_list("pk", flat=True)


def _ping(ctx: Context) -> Figures:
    """The Healthchecks ping protocol: /start, then the plain address, or /fail and why."""
    _send(_address("start", ctx=ctx), ctx=ctx, content=b"")
    try:
        figures = measure(now=ctx.now)
    except Exception as problem:
        line = f"{type(problem).__name__}: {problem}"
        try:
            _send(_address("fail", ctx=ctx), ctx=ctx, content=text.gate(line).encode())
        except outbound.Unreachable as silence:
            logger.error("%s", silence)
        raise
    _send(_address("", ctx=ctx), ctx=ctx, content=_lines(figures).encode())
    return figures


def _send(
    url: str, *, ctx: Context, json: object = None, content: bytes | None = None
) -> None:
    """One POST. Raises Unreachable for every answer that is not a yes."""
    headers = {}
    if settings.HEARTBEAT_TOKEN:
        headers["Authorization"] = f"Bearer {settings.HEARTBEAT_TOKEN}"
    answer = outbound.post(
        url, now=ctx.now, json=json, content=content, headers=headers
    )
    where = outbound.host(url)
    if 300 <= answer.status < 400:
        raise outbound.Unreachable(
            f"{where} answered {answer.status}, a redirect, which is not followed: correct HEARTBEAT_URL"
        )
    if not answer.ok or answer.body.strip() in THROWN_AWAY:
        said = f": {answer.body.strip()}" if answer.body.strip() else ""
        raise outbound.Unreachable(f"{where} answered {answer.status}{said}")


def _address(signal: str, *, ctx: Context) -> str:
    """The ping address of a signal; `rid` pairs the start with its end."""
    url = httpx.URL(settings.HEARTBEAT_URL)
    path = url.path.rstrip("/") + (f"/{signal}" if signal else "")
    return str(url.copy_with(path=path).copy_merge_params({"rid": str(ctx.claim_id)}))


def _lines(figures: Figures) -> str:
    """The body of a ping: the lines of this report, each of them in the transcript too."""
    told: dict[str, Any] = figures.told()
    lines = [
        f"{key.replace('_', ' ')}: {'none' if value is None else value}"
        for key, value in told.items()
    ]
    for line in lines:
        logger.info("%s", line)
    return "\n".join(lines)
