"""Every job type: its tier, who it excludes, how long it may take, what for.

The tier is a column here and not in the type's file, because the partition can only be
reviewed side by side. A type without a tier, or with two, is refused by a check.
"""

from datetime import timedelta

from jobworker.registry import JobType

HOUR = timedelta(hours=1)
TERRAFORM = ("terraform",)

JOB_TYPES: tuple[JobType, ...] = (
    JobType(
        type="cluster_provision",
        tier="heavy",
        purpose="Makes a cluster by a Terraform module, or changes it to what is asked for.",
        time_limit=2 * HOUR,
        programs=TERRAFORM,
    ),
    JobType(
        type="cluster_destroy",
        tier="heavy",
        purpose="Takes a cluster away.",
        time_limit=2 * HOUR,
        programs=TERRAFORM,
    ),
    JobType(
        type="database_provision",
        tier="heavy",
        purpose="Makes a database by a Terraform module, or changes it to what is asked for.",
        time_limit=2 * HOUR,
        programs=TERRAFORM,
    ),
    JobType(
        type="database_destroy",
        tier="heavy",
        purpose="Takes a database away.",
        time_limit=2 * HOUR,
        programs=TERRAFORM,
    ),
    JobType(
        type="packer_build",
        tier="heavy",
        purpose="Builds an image by a Packer template.",
        time_limit=2 * HOUR,
        programs=("packer",),
    ),
    JobType(
        type="autodelete_sweep",
        tier="light",
        purpose="Ends deployments whose time is over, and warns before it is.",
        time_limit=timedelta(minutes=10),
        exclusive="autodelete_sweep",
        by_hand=False,  # it works for all tenants
    ),
)
