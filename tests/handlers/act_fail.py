"""act_fail: act, under another row of the timetable."""

from tests.handlers.act import run

__all__ = ["run"]
