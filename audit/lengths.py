"""lengths: how long a run waited and ran, of a row and for the database: one definition.

A wait is told of first attempts, from the enqueue to the claim. A later attempt waits
since the one before it ended, which its row does not say; its page, which has the
attempts around it, does (`timeline`).
"""

from datetime import datetime, timedelta

from django.db.models import Case, DurationField, ExpressionWrapper, F, Q, When

from audit.models import Run

WAIT_KNOWN = Q(attempt__lte=1)
_DURATION = DurationField()
WAITED = Case(
    When(
        WAIT_KNOWN,
        then=ExpressionWrapper(F("claimed_at") - F("enqueued_at"), _DURATION),
    ),
    output_field=_DURATION,
)
RAN = ExpressionWrapper(F("finished_at") - F("started_at"), _DURATION)


def waited(run: Run) -> timedelta | None:
    """From enqueued until claimed; unknown for a run that was never claimed, or is no first attempt."""
    return between(run.enqueued_at, run.claimed_at) if run.attempt <= 1 else None


def ran(run: Run) -> timedelta | None:
    """From started until finished; unknown for a run that never began."""
    return between(run.started_at, run.finished_at)


def between(since: datetime | None, until: datetime | None) -> timedelta | None:
    """Never negative: two clocks may have told the times."""
    return None if since is None or until is None else max(until - since, timedelta())
