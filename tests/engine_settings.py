"""The project's settings with the tests' own timetable, for real processes."""

from project.settings import *  # noqa: F403

WORKQUEUE_HANDLERS = "tests.timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "tests.handlers"
JOBWORKER_TYPES = "tests.job_types.JOB_TYPES"
JOBWORKER_JOBS_PACKAGE = "tests.jobs"
