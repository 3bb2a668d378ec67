"""The project's settings with the tests' own timetable, for real processes."""

from project.settings import *  # noqa: F403

WORKQUEUE_HANDLERS = "tests.timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "tests.handlers"
