"""Job types that tests of the screens submit; none of them is ever run."""

from datetime import timedelta

from jobworker.registry import JobType

JOB_TYPES = (
    JobType(
        type="grow",
        tier="heavy",
        purpose="Grow a cluster.",
        time_limit=timedelta(hours=2),
        programs=("terraform",),
    ),
    JobType(
        type="follow_export",
        tier="light",
        purpose="Export an image and follow it.",
        time_limit=timedelta(hours=4),
        exclusive="exports",
    ),
    JobType(
        type="sweep",
        tier="light",
        purpose="Look for what is overdue.",
        time_limit=timedelta(minutes=5),
        by_hand=False,
    ),
)
