"""Every job type: its tier, who it excludes, how long it may take, what for.

The tier is a column here and not in the type's file, because the partition can only be
reviewed side by side. A type without a tier, or with two, is refused by a check.
"""

from datetime import timedelta

from jobworker.registry import JobType

HOUR = timedelta(hours=1)

JOB_TYPES: tuple[JobType, ...] = ()
