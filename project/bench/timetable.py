"""The benchmark's timetable: nothing ticks by itself."""

from workqueue.registry import Handler

TIMETABLE = (
    Handler(
        key="noop",
        title="No-op",
        purpose="Costs nothing but its bookkeeping.",
        cadence=None,
    ),
    Handler(key="stamp", title="Stamp", purpose="Says when it started.", cadence=None),
)
