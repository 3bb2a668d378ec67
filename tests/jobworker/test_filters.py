"""What the list of jobs can be asked; what cannot be read is refused, not guessed."""

import pytest
from django.http import QueryDict

from jobworker.filters import JobFilters
from jobworker.models import Job
from tests.jobworker.screening import ended, pending
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db


def asked(query: str) -> JobFilters:
    return JobFilters(QueryDict(query), queryset=Job.objects.all())


def test_filters_combine(acme: Tenant):
    pending(acme, subject="one")
    pending(acme, subject="two", tier="light")
    found = asked("tier=light&status=pending&status=running&tenant=acme").qs
    assert [job.subject for job in found] == ["two"]


def test_text_is_looked_for_in_error_and_subject(acme: Tenant):
    ended(acme, subject="one", error="Quota exceeded")
    pending(acme, subject="quota of vega")
    assert asked("text=quota").qs.count() == 2


@pytest.mark.parametrize(
    "query", ["tier=huge", "status=odd", "since=yesterdayish", "text=%00"]
)
def test_what_cannot_be_read_filters_nothing(acme: Tenant, query: str):
    pending(acme)
    filters = asked(query)
    assert filters.qs.count() in (0, 1)
    assert filters.errors or "text" in query


def test_set_filters_are_told_in_words(acme: Tenant):
    (tier, state) = asked("tier=medium&status=failed").chips
    assert (tier.label, tier.value) == ("Tier", "mixed")
    assert (state.label, state.value) == ("State", "Failed")
