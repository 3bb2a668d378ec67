"""operate: what operators do to notifications, each written down with who and why."""

from collections.abc import Callable, Iterable

from django.db import transaction

from audit import ledger
from scheduler.handlers.notifications.models import Notification


def retry(rows: Iterable[Notification], *, who: str, why: str = "") -> int:
    """Send them with the next run, whatever became of them. Returns how many; sent ones are not."""
    return _move(rows, Notification.retry, verb="retried", who=who, why=why)


def suppress(rows: Iterable[Notification], *, who: str, why: str = "") -> int:
    """Do not send them. Returns how many; what is sent or being sent is not."""
    return _move(rows, Notification.suppress, verb="suppressed", who=who, why=why)


def _move(
    rows: Iterable[Notification],
    move: Callable[[Notification], bool],
    *,
    verb: str,
    who: str,
    why: str,
) -> int:
    moved = 0
    for row in rows:
        before = row.state
        with transaction.atomic():
            if not move(row):
                continue
            row.refresh_from_db(fields=["state"])
            ledger.change(
                who=who,
                origin="admin",
                subject=f"notification:{row.pk}",
                verb=verb,
                old={"state": before},
                new={"state": row.state},
                why=why,
                tenant_id=row.tenant_id,
            )
        moved += 1
    return moved
