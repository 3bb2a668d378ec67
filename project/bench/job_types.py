"""The benchmark's job types."""

from datetime import timedelta

from jobworker.registry import JobType

HOUR = timedelta(hours=1)

JOB_TYPES = (
    JobType(
        type="mark", tier="light", purpose="Says when it started.", time_limit=HOUR
    ),
    JobType(
        type="nap", tier="light", purpose="Waits for the outside.", time_limit=HOUR
    ),
    JobType(type="talk", tier="light", purpose="Writes lines.", time_limit=HOUR),
)
