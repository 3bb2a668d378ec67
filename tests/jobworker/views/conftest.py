"""Fixtures of the job worker's pages."""

from tests.jobworker.screening import acme, boss, types  # noqa: F401
