"""The project's settings with the two tasks of the comparison."""

from project.settings import *  # noqa: F403

WORKQUEUE_HANDLERS = "tests.bench.timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "tests.bench.handlers"
