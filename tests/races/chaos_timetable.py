"""Rows that tick for every tenant, and rows that the chaos test asks for."""

from workqueue.registry import Handler

TIMETABLE = (
    Handler(key="ticking", title="Ticking", purpose="For tests.", cadence="10s"),
    Handler(key="act", title="Act", purpose="For tests.", cadence=None),
    Handler(
        key="act_fail",
        title="Act once",
        purpose="For tests.",
        cadence=None,
        abandon="fail",
    ),
)
