"""What the list of notifications can be asked."""

from typing import Any

import pytest
from django.http import QueryDict

from scheduler.handlers.notifications.filters import NotificationFilters
from scheduler.handlers.notifications.models import Notification
from tests import factories
from tests.scheduler.handlers.notifications.arrange import due, email, web

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> dict[str, Notification]:
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    mail, bell, other = (
        email(acme),
        web(acme, name="bell"),
        email(granite, name="other"),
    )
    return {
        "one": due(mail, "anna@example.com", subject="Disk is full"),
        "two": due(mail, "boris@example.com", last_error="451 disk quota"),
        "three": due(bell, "anna", attempts=1),
        "four": due(other, "anna@example.com"),
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"one", "two", "three", "four"}),
        ("text=disk", {"one", "two"}),
        ("tenant=granite", {"four"}),
        ("tenant=acme,granite&kind=email", {"one", "two", "four"}),
        ("channel=bell", {"three"}),
        ("recipient=ANNA", {"one", "three", "four"}),
        ("recipient=anna@&tenant=acme", {"one"}),
        ("state=sent&state=failed", set()),
        ("since=1 h", {"one", "two", "three", "four"}),
        ("until=1 h", set()),
    ],
)
def test_filters_combine(
    rows: dict[str, Notification], query: str, names: set[str]
) -> None:
    assert found(query) == {rows[name].pk for name in names}


def test_what_cannot_be_read_is_refused_and_filters_nothing(
    rows: dict[str, Notification],
) -> None:
    filters = NotificationFilters(
        QueryDict("since=whenever&kind=pigeon"), queryset=Notification.objects.all()
    )
    assert filters.qs.count() == 4
    assert set(filters.form.errors) == {"since", "kind"}


def found(query: str) -> set[Any]:
    filters = NotificationFilters(QueryDict(query), queryset=Notification.objects.all())
    return {row.pk for row in filters.qs}
