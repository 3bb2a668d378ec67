"""The project's settings with a timetable for chaos: what ticks, and what is asked for."""

from project.settings import *  # noqa: F403

WORKQUEUE_HANDLERS = "tests.races.chaos_timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "tests.handlers"
