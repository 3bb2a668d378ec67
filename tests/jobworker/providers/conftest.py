"""A job that runs, without a supervisor."""

from tests.jobworker.running import job_root, packer, run, start, terraform

__all__ = ["job_root", "packer", "run", "start", "terraform"]
