"""pauses: stop something from being enqueued by slot and claimed, and let it go again.

What runs goes on. Every pause and its end is a Change in the same transaction. A pause
whose time is over counts as ended everywhere; its row is closed when the same thing is
paused again.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from audit import clock, ledger
from audit.text import gate
from workqueue import wakeup
from workqueue.exceptions import InvalidValues
from workqueue.models import Pause, Tenant


def pause(
    *,
    scope: str,
    reason: str,
    who: str,
    origin: str,
    handler: str = "",
    tenant: Tenant | None = None,
    until: datetime | None = None,
) -> Pause:
    """Pause it. Raises InvalidValues where it is paused already or something is missing."""
    reason = gate(reason.strip())  # shown on every page
    if problems := _problems(
        scope=scope, handler=handler, tenant=tenant, reason=reason, until=until
    ):
        raise InvalidValues(problems)
    row = Pause(
        scope=scope,
        handler=handler,
        tenant=tenant,
        reason=reason,
        who=who,
        since=clock.now(),
        until=until,
    )
    try:
        with transaction.atomic():
            _close_those_over(row)
            row.save(force_insert=True)
            _tell(
                row, verb="paused", who=who, origin=origin, why=reason, new=_values(row)
            )
    except IntegrityError:
        raise InvalidValues({"scope": _already(row)}) from None
    return row


def resume(pause: Pause, *, who: str, origin: str, why: str) -> bool:
    """End it. False: it had ended already."""
    with transaction.atomic():
        ended = Pause.objects.in_force().filter(pk=pause.pk)
        if not ended.update(ended_at=clock.DatabaseNow(), ended_by=who):
            return False
        _tell(
            pause, verb="resumed", who=who, origin=origin, why=why, old=_values(pause)
        )
        wakeup.on_commit_notify()
    return True


def _problems(
    *,
    scope: str,
    handler: str,
    tenant: Tenant | None,
    reason: str,
    until: datetime | None,
) -> dict[str, str]:
    found: dict[str, str] = {}
    if scope not in Pause.Scope:
        found["scope"] = f"Choose one of {', '.join(Pause.Scope.values)}."
    needs_handler = scope in (Pause.Scope.HANDLER, Pause.Scope.JOB_TYPE)
    if needs_handler != bool(handler):
        found["handler"] = "Say which one." if needs_handler else "Leave it empty."
    if (scope == Pause.Scope.TENANT) != (tenant is not None):
        found["tenant"] = "Leave it empty." if tenant else "Say which one."
    if not reason:
        found["reason"] = "Say why: it is shown on every page until the pause ends."
    if until is not None and until <= clock.now():
        found["until"] = "This time has passed. Enter a later one, or none."
    return found


def _same(row: Pause) -> dict[str, object]:
    return {"scope": row.scope, "handler": row.handler, "tenant": row.tenant}


def _close_those_over(row: Pause) -> None:
    """Pauses of the same thing whose time has passed give way to a new one."""
    over = Pause.objects.in_force().filter(until__lte=clock.DatabaseNow(), **_same(row))
    over.update(ended_at=F("until"))


def _already(row: Pause) -> str:
    there = Pause.objects.in_force().filter(**_same(row)).first()
    if there is None:
        return "It was paused by somebody else at the same moment. Look again."
    return f"It is paused already, by {there.who}: “{there.reason}”. Resume it first."


def _values(row: Pause) -> dict[str, str | None]:
    return {
        "scope": row.scope,
        "handler": row.handler,
        "tenant": row.tenant.slug if row.tenant else "",
        "reason": row.reason,
        "until": row.until.isoformat() if row.until else None,
    }


def _tell(
    row: Pause,
    *,
    verb: str,
    who: str,
    origin: str,
    why: str,
    old: dict[str, str | None] | None = None,
    new: dict[str, str | None] | None = None,
) -> None:
    what = row.handler or (row.tenant.slug if row.tenant else "")
    ledger.change(
        who=who,
        origin=origin,
        subject=f"pause:{row.scope}{':' if what else ''}{what}",
        verb=verb,
        old=old,
        new=new,
        why=why,
        tenant_id=row.tenant_id,
    )
