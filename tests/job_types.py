"""Job types for tests of the engine: each does what its parameter tells it."""

from datetime import timedelta

from jobworker.registry import JobType


def _row(type: str, tier: str, **more: object) -> JobType:
    values = {"purpose": "For tests.", "time_limit": timedelta(hours=1), **more}
    return JobType(type=type, tier=tier, **values)  # type: ignore[arg-type]


JOB_TYPES = (
    _row("act_heavy", "heavy"),
    _row("act_medium", "medium"),
    _row("act_light", "light"),
    _row("act_alone", "light", exclusive="alone"),
    _row("act_limited", "light", time_limit=timedelta(seconds=1)),
    _row("act_lacking", "heavy", programs=("no-such-program",)),
    _row("act_follows", "light"),
)
