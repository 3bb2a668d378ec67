"""A timetable for tests of the engine: nothing ticks, and `act` does what it is told."""

from datetime import timedelta

from workqueue.registry import Handler, Retry


def _row(key: str, **more: object) -> Handler:
    values = {"title": key.title(), "purpose": "For tests.", "cadence": None, **more}
    return Handler(key=key, **values)  # type: ignore[arg-type]


TIMETABLE = (
    _row("act"),
    _row("act_fail", abandon="fail"),
    _row("act_hold", abandon="hold"),
    _row("act_limited", time_limit=timedelta(seconds=1)),
    _row("act_retry", retry=Retry(attempts=2, base=timedelta(seconds=60))),
)
