"""A mail server for tests that send."""

from collections.abc import Iterator

import pytest

from scheduler.handlers.notifications import back_off
from tests.scheduler.handlers.notifications.mail_server import MailServer, running


@pytest.fixture
def smtp() -> Iterator[MailServer]:
    """A mail server that takes everything, until told otherwise."""
    with running(MailServer()) as server:
        yield server


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Back-offs are the same in every run."""
    back_off.chance.seed(7)
