"""The project's settings with the benchmark's timetable."""

from project.settings import *  # noqa: F403

WORKQUEUE_HANDLERS = "project.bench.timetable.TIMETABLE"
WORKQUEUE_HANDLERS_PACKAGE = "project.bench.handlers"
JOBWORKER_TYPES = "project.bench.job_types.JOB_TYPES"
JOBWORKER_JOBS_PACKAGE = "project.bench.jobs"
