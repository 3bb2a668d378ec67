"""A timetable for tests of the scheduler. Tests put rows of their own in its place."""

from workqueue.registry import Handler


def row(key: str, **values: object) -> Handler:
    """A row with sensible values for what is not given."""
    defaults = {"title": key.title(), "purpose": "For tests.", "cadence": "10s"}
    return Handler(key=key, **{**defaults, **values})  # type: ignore[arg-type]


# For real processes: rows that tick often, one for whoever has work, one for all.
TIMETABLE: tuple[Handler, ...] = (
    row("probed", cadence="1s"),
    row("gated", cadence="1s"),
    row("plain", cadence="2s"),
    row("started", cadence="1h", at_start=True),
)
