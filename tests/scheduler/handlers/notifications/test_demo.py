"""What `start --demo` fills in."""

from datetime import timedelta

import pytest

from audit import clock
from scheduler.handlers.notifications import deliver
from scheduler.handlers.notifications.demo import demo
from scheduler.handlers.notifications.models import Channel, Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import context
from tests.scheduler.handlers.notifications.mail_server import MailServer

pytestmark = pytest.mark.django_db


def test_ten_minutes_of_work_with_one_partial_run(smtp: MailServer) -> None:
    acme = factories.tenant("acme", name="Acme")
    factories.superuser()
    smtp.replies["nobody@acme.example"] = "550 5.1.1 no such mailbox here"
    start = clock.now()

    demo([acme], smtp.host, smtp.port)
    demo([acme], smtp.host, smtp.port)  # a second start within the minute adds nothing

    words = []
    for passed in range(0, 630, 30):
        with clock.at(start + timedelta(seconds=passed)):
            words.append(deliver.run(context(acme)).word)
    assert words.count("partial") == 1
    assert set(words) == {"succeeded", "partial"}
    assert Channel.objects.filter(tenant=acme, kind="email").count() == 1
    assert len(smtp.taken) == 31
    assert Notification.objects.filter(state="failed").count() == 1
    assert not Notification.objects.filter(state="pending").exists()
