"""filters: what the list of jobs can be asked, over the URL."""

import django_filters
from django import forms
from django.db.models import Q

from audit.filters import Filters, MomentFilter, TenantFilter, TextSieve, WordsFilter
from jobworker.models import Job


class JobFilters(Filters):
    """What Jobs can be asked."""

    text = TextSieve(
        label="Text",
        condition=lambda text: Q(error__icontains=text) | Q(subject__icontains=text),
    )
    tenant = TenantFilter(label="Tenant", slug="tenant_slug")
    type = WordsFilter(label="Type")
    tier = django_filters.ChoiceFilter(
        label="Tier", choices=Job.Tier, empty_label="Any"
    )
    status = django_filters.MultipleChoiceFilter(
        label="State",
        choices=Job.Status,
        widget=forms.CheckboxSelectMultiple,
        distinct=False,
    )
    since = MomentFilter(label="Submitted", field_name="created_at", lookup_expr="gte")
    until = MomentFilter(label="Submitted", field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Job
        fields: list[str] = []
