"""A mail server for tests that send."""

from collections.abc import Iterator

import pytest

from tests.scheduler.handlers.notifications.mail_server import MailServer, running


@pytest.fixture
def smtp() -> Iterator[MailServer]:
    """A mail server that takes everything, until told otherwise."""
    with running(MailServer()) as server:
        yield server
