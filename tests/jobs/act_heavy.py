"""As act_light, in a row of its own."""

from tests.jobs.act_light import Params, lock, run, subject

__all__ = ["Params", "lock", "run", "subject"]
