"""Waiting for what becomes of a job."""

from jobworker.models import Job
from tests.waiting import wait_until


def reach(job: Job, *statuses: str, within: float = 20) -> Job:
    def reached() -> bool:
        job.refresh_from_db()
        return job.status in statuses

    wait_until(reached, within=within, what=f"{job} {statuses}")
    return job
