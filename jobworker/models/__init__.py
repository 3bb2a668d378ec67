"""The tables of the job worker."""

from jobworker.models.deployment import (
    Deployment,
    Image,
    TerraformLock,
    TerraformState,
)
from jobworker.models.job import Job

__all__ = ["Deployment", "Image", "Job", "TerraformLock", "TerraformState"]
