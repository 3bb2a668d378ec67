"""The two tasks of the comparison."""

from workqueue.registry import Handler

TIMETABLE = (
    Handler(key="ticked", title="No-op", purpose="Appends a byte.", cadence=None),
    Handler(key="stamped", title="Stamp", purpose="Writes its latency.", cadence=None),
)
