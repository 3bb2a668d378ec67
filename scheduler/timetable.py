"""The timetable: a row per handler. The whole menu on one page."""

from workqueue.registry import Handler

TIMETABLE: tuple[Handler, ...] = ()
