"""The tables of the job worker."""

from jobworker.models.job import Job

__all__ = ["Job"]
