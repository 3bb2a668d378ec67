"""archival.apply_policies: rows past their policy go into files, or for good."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from audit import clock
from scheduler.handlers.archival import sweep
from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.commit import commit, remove_unfinished
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.expire import expire
from scheduler.handlers.archival.models import ArchivalPolicy, ArchiveFile
from scheduler.handlers.archival.select import BATCH, Selected, cutoff, selected
from scheduler.handlers.archival.write import write
from workqueue.context import Context, Outcome
from workqueue.models import Tenant

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Applied:
    """What one policy did in this run."""

    rows: int = 0  # that left the table
    files: int = 0
    bytes: int = 0  # of the files
    expired: int = 0  # old files that were removed
    error: str = ""


def run(ctx: Context) -> Outcome:
    """Apply each policy of the tenant; the platform's item also sweeps what no policy speaks of.

    Stops after ARCHIVE_MAX_SECONDS or when the process drains, and asks to be run again.
    """
    now = ctx.slot or ctx.now
    until = clock.steady() + settings.ARCHIVE_MAX_SECONDS

    def spent() -> bool:
        return ctx.stopping() or clock.steady() >= until

    platform = Tenant.objects.filter(pk=ctx.tenant_id, is_platform=True).exists()
    work = selected(tenant_id=ctx.tenant_id, tenant=ctx.tenant, now=now)
    if platform:
        work += sweep.of_removed_tenants(now=now)
    details: dict[str, Any] = {}
    for chosen in work:
        if spent():
            break
        done = _apply(chosen, ctx=ctx, now=now, spent=spent)
        details[_label(chosen, ctx=ctx)] = _told(chosen, done)
        ctx.progress(details)
    if platform and not spent():
        swept = sweep.sweep(now=now, spent=spent)
        ctx.tally.seen += swept.rows
        ctx.tally.changed += swept.rows
        details["swept"] = swept.told()
    return ctx.outcome(
        _summary(details), details=details, again_in=timedelta() if spent() else None
    )


def due(now: datetime) -> "QuerySet[Tenant, int]":
    """Tenants with rows or files past a policy of theirs, or restored files. The platform always: it sweeps."""
    holds = Q(is_platform=True)
    rules = ArchivalPolicy.objects.enabled().annotate(default=Q(tenant=None)).order_by()
    for name, days, default in rules.values_list(
        "record_type", "keep_days", "default"
    ).distinct():
        if rows := types().get(name):
            whose = _whose(name, default=default, keep_days=days)
            holds |= whose & Q(rows.overdue(before=_midnight(now, days)))
    files = rules.exclude(archive_keep_days=None).values_list(
        "record_type", "archive_keep_days", "default"
    )
    for name, kept, default in files.distinct():
        whose = _whose(name, default=default, archive_keep_days=kept)
        old = ArchiveFile.objects.present().filter(
            tenant_id=OuterRef("pk"),
            record_type=name,
            created_at__lt=_midnight(now, kept or 0),
        )
        holds |= whose & Q(Exists(old))
    restored = ArchiveFile.objects.present().restored().filter(tenant_id=OuterRef("pk"))
    holds |= Q(Exists(restored))
    return Tenant.objects.filter(holds).values_list("pk", flat=True)


def _whose(record_type: str, *, default: bool, **rule: int | None) -> Q:
    """The tenants that a rule holds for: its own, or all without a policy of their own."""
    own = ArchivalPolicy.objects.filter(record_type=record_type).exclude(tenant=None)
    if default:
        return ~Q(pk__in=own.values("tenant"))
    return Q(pk__in=own.enabled().filter(**rule).values("tenant"))


def _midnight(now: datetime, days: int) -> datetime:
    return cutoff(now, keep_days=days, zone=settings.SERVER_TIME_ZONE)


def _apply(
    chosen: Selected, *, ctx: Context, now: datetime, spent: Callable[[], bool]
) -> Applied:
    """One policy. What the disk refuses is this policy's failure, not the next one's."""
    done = Applied()
    seen, failed = ctx.tally.seen, ctx.tally.failed
    try:
        if chosen.policy.action == ArchivalPolicy.Action.ARCHIVE:
            _archive(chosen, ctx=ctx, done=done, spent=spent)
        else:
            _delete(chosen, ctx=ctx, done=done, spent=spent)
        done.expired = expire(chosen, now=now)
    except (ArchiveError, OSError) as problem:
        done.error = _line(problem)
        logger.error("%s", done.error)
        # Every row of the file that did not come about, and one where there was none.
        left = ctx.tally.seen - seen - done.rows - (ctx.tally.failed - failed)
        ctx.tally.seen += left == 0
        ctx.tally.failed += max(1, left)
        ctx.tally.error = ctx.tally.error or done.error
    return done


def _archive(
    chosen: Selected, *, ctx: Context, done: Applied, spent: Callable[[], bool]
) -> None:
    remove_unfinished(chosen)
    for written in write(chosen, ctx=ctx, spent=spent):
        commit(chosen, written)
        ctx.tally.changed += written.measured.rows
        done.rows += written.measured.rows
        done.files += 1
        done.bytes += written.measured.bytes
        logger.info(
            "%s: %s rows, %s bytes, sha256 %s",
            written.path,
            written.measured.rows,
            written.measured.bytes,
            written.measured.sha256_file,
        )


def _delete(
    chosen: Selected, *, ctx: Context, done: Applied, spent: Callable[[], bool]
) -> None:
    while not spent():
        places = chosen.rows.places(
            tenant_id=chosen.tenant_id, before=chosen.before, after=None, limit=BATCH
        )
        if not places:
            break
        with transaction.atomic():
            deleted = chosen.rows.delete(places=places, before=chosen.before)
        ctx.tally.seen += deleted
        ctx.tally.changed += deleted
        done.rows += deleted
        if deleted < len(places):
            break  # they change as we look; the next run sees what they have become
    if done.rows:
        logger.info("%s: %s rows deleted", chosen.rows.name, done.rows)


def _line(problem: ArchiveError | OSError) -> str:
    if isinstance(problem, OSError):
        return (
            f"archive: {(problem.strerror or str(problem)).lower()}: {problem.filename}"
        )
    return str(problem)


def _label(chosen: Selected, *, ctx: Context) -> str:
    own = chosen.tenant_id == ctx.tenant_id
    return chosen.rows.name if own else f"{chosen.rows.name} of {chosen.tenant}"


def _told(chosen: Selected, done: Applied) -> dict[str, Any]:
    return {
        "policy": f"{chosen.policy.action} after {chosen.policy.keep_days} days",
        "before": chosen.before.isoformat(),
        "rows": done.rows,
        "files": done.files,
        "bytes": done.bytes,
        "expired_files": done.expired,
        **({"error": done.error} if done.error else {}),
    }


def _summary(details: dict[str, Any]) -> str:
    parts = [
        f"{entry['rows']:,} {label} {'archived' if entry['files'] else 'deleted'}"
        for label, entry in details.items()
        if label != "swept" and entry["rows"]
    ]
    if swept := details.get("swept", {}).get("rows"):
        parts.append(f"{swept:,} rows swept")
    return "; ".join(parts) or "nothing is past its policy"
