"""attempt: the page of one claim, while it runs and for as long as the ledger keeps it.

The address is the claim's from the first moment on: the live item answers while a
worker holds it, the ledger's Run after that, with the same lines in the same order.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from audit import clock, page, queries, timeline, tracks, window, words
from audit.timeline import Attempt
from workqueue import access, registry
from workqueue.follow import LEFT_OUT
from workqueue.models import WorkItem
from workqueue.verbs import REPEAT
from workqueue.views.log import Log, number, wanted

COUNTERS = ("seen", "changed", "skipped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An attempt with what its page needs of the queue."""

    attempt: Attempt
    item: WorkItem | None  # the live item, whichever attempt of it lives


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the table of attempts."""

    attempt: Attempt
    this: bool  # the page is its own
    waited: timedelta | None
    ran: timedelta | None


@page.needs("audit.view_run")
def attempt(request: HttpRequest, claim_id: UUID) -> HttpResponse:
    """The whole page."""
    found = find(request, claim_id)
    log = log_of(found.attempt)
    return page.render(
        request,
        "workqueue/attempt.html",
        title=words.shown(
            f"{registry.title(found.attempt.handler)}, {found.attempt.tenant}"
        ),
        group="Audit",
        short_id=f"{claim_id.hex[:8]}…{claim_id.hex[-4:]}",
        details=json.dumps(found.attempt.details, indent=2, ensure_ascii=False)
        if found.attempt.details
        else "",
        **log.shown(wanted(request), selected=number(request, "line")),
        **context(request, found, written=log.summed()),
    )


def log_of(attempt: Attempt) -> Log:
    """Its lines."""
    return Log(
        claim_id=attempt.claim_id,
        place=reverse("admin:run", args=[attempt.claim_id]),
        live=attempt.live,
        began=attempt.started_at is not None,
    )


def find(request: HttpRequest, claim_id: UUID) -> Found:
    """The live item if there is one, else the ledger's Run. 404: neither, or another tenant's."""
    item = WorkItem.objects.executing().filter(claim_id=claim_id).first()
    if item is not None:
        shown = _of_item(item)
    elif (run := queries.run(claim_id)) is not None:
        shown = timeline.of_run(run)
        item = WorkItem.objects.filter(pk=run.item_id).first() if run.item_id else None
    else:
        raise Http404(
            "No run has this id: it was handed back before it began, or it is older than what is kept."
        )
    if not access.sees(request, shown.tenant_id):
        raise Http404
    return Found(attempt=shown, item=item)


def _of_item(item: WorkItem) -> Attempt:
    assert item.claim_id is not None  # noqa: S101 - it was found by it
    progress = item.progress if isinstance(item.progress, dict) else {}
    left_out = progress.get(LEFT_OUT)
    counts = {
        name: value for name in COUNTERS if isinstance(value := progress.get(name), int)
    }
    return Attempt(
        claim_id=item.claim_id,
        item_id=item.pk,
        kind="item",
        tenant_id=item.tenant_id,
        tenant=item.tenant_slug,
        handler=item.handler,
        dedup_key=item.dedup_key,
        state="executing",
        trigger=item.trigger,
        slot=item.slot,
        tick_id=item.tick_id,
        enqueued_at=item.enqueued_at,
        claimed_at=item.claimed_at,
        started_at=item.started_at,
        finished_at=None,
        node=item.node,
        number=item.attempts,
        recoveries=item.recoveries,
        details={
            name: value
            for name, value in progress.items()
            if name not in (*COUNTERS, LEFT_OUT)
        }
        or None,
        dropped_lines=left_out if isinstance(left_out, int) else 0,
        renewed_at=item.renewed_at,
        time_limit=timedelta(seconds=item.time_limit_s),
        abandon=item.abandon,
        seen=counts.get("seen"),
        changed=counts.get("changed"),
        skipped=counts.get("skipped"),
        failed=counts.get("failed"),
    )


def context(
    request: HttpRequest, found: Found, *, written: window.Sum
) -> dict[str, Any]:
    """Everything but the lines: title, time line, attempts, counters."""
    this, now = found.attempt, clock.now()
    attempts = _attempts(found)
    lates = queries.lates([each.claim_id for each in attempts])
    others = [each for each in attempts if each.claim_id != this.claim_id]
    return {
        "now": now,
        "attempt": this,
        "handler_title": registry.title(this.handler),
        "ran": this.ran(now),
        "waited": timeline.waited(this, others),
        "usual": queries.medians([this.handler]).get(this.handler),
        "steps": timeline.steps(this, others=others, now=now),
        "old": timezone.localtime(this.enqueued_at).date()
        != timezone.localtime(now).date(),
        "starts": sum(each.number > 0 for each in attempts),
        "cut": len(attempts) >= queries.ATTEMPTS,
        "attempts": [
            _line(each, attempts, this=each.claim_id == this.claim_id, now=now)
            for each in reversed(attempts)
        ],
        "drawing": tracks.tracks(attempts, lates, now=now)
        if _worth_drawing(attempts, lates)
        else "",
        "lates": timeline.explain(attempts, lates),
        "item": found.item,
        "deadline": this.started_at
        and this.time_limit
        and this.started_at + this.time_limit,
        "may_cancel": found.item is not None
        and this.live
        and access.may(request, "workqueue.cancel_item", this.tenant_id),
        "may_retry": found.item is None
        and this.kind == "item"
        and this.state in REPEAT.states
        and access.may(request, REPEAT.permission, this.tenant_id),
        "written": written,
        "abandon_words": timeline.ABANDON.get(this.abandon, ""),
    }


def _attempts(found: Found) -> list[Attempt]:
    """The attempts of the item around this one, first to last, with the live one."""
    this = found.attempt
    if this.item_id is None:
        return [this]
    runs = queries.attempts(this.item_id, around=this.number)
    known = {run.id: timeline.of_run(run) for run in runs}
    known[this.claim_id] = this
    if (
        found.item is not None
        and found.item.claim_id
        and found.item.status == WorkItem.Status.EXECUTING
    ):
        known.setdefault(found.item.claim_id, _of_item(found.item))
    return sorted(known.values(), key=lambda each: (each.number, each.enqueued_at))


def _line(
    attempt: Attempt, attempts: list[Attempt], *, this: bool, now: datetime
) -> Line:
    waited = timeline.waited(attempt, attempts)
    return Line(attempt=attempt, this=this, waited=waited, ran=attempt.ran(now))


def _worth_drawing(attempts: list[Attempt], lates: dict[UUID, Any]) -> bool:
    return (len(attempts) > 1 or bool(lates)) and any(
        each.started_at for each in attempts
    )
