"""The project's settings with the timetable for tests, for real scheduler processes."""

from project.settings import *  # noqa: F403

WORKQUEUE_HANDLERS = "tests.scheduler.timetable_for_tests.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "tests.scheduler.runs"
