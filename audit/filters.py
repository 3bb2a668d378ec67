"""What lists of the ledger can be asked: one set of filters per list, over the URL.

Every filter combines with every other (AND) and stands in the query string, so a
filtered list is a link. What cannot be read is refused with a sentence under its
field, and filters nothing. What an index serves narrows the rows that are walked; the
rest is a sieve over them (see keyset).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import django_filters
from django import forms
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from audit import lengths, words
from audit.fields import (
    LengthField,
    Moment,
    MomentField,
    VisibleTextField,
    WordsField,
)
from audit.models import Change, Run
from audit.names import names

# The place in the list, and how long to look: filters start at the newest again.
CURSORS = ("newer", "older", "longer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One filter that is set, in words, and the address without it."""

    name: str  # the parameter
    label: str
    value: str
    without: str  # query string without it, "" or "?..."


class TextFilter(django_filters.CharFilter):  # type: ignore[misc]
    """A filter over VisibleTextField."""

    field_class = VisibleTextField


class WordsFilter(django_filters.Filter):  # type: ignore[misc]
    """Any of the words; `field_name` is the column."""

    field_class = WordsField

    def filter(self, qs: QuerySet[Any], value: list[str]) -> QuerySet[Any]:
        """Rows whose column is one of the words."""
        return qs.filter(**{f"{self.field_name}__in": value}) if value else qs


class Sieve(django_filters.Filter):  # type: ignore[misc]
    """A condition that no index serves: rows are sifted by it, in the list's order and for a bounded time."""

    def __init__(self, *, condition: Callable[[Any], Q | None], **more: Any) -> None:
        """`condition`: what a row must meet, of the value that was asked for; None: anything."""
        super().__init__(**more)
        self.condition = condition

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        """The rows as they are: the condition is part of `Filters.sieve`."""
        return qs


class TextSieve(Sieve):
    """A sieve over VisibleTextField."""

    field_class = VisibleTextField


class ErrorSieve(TextSieve):
    """Text in an error, which only runs that did not succeed have: these have an index of their own."""

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        """The runs that may have one."""
        return qs.exclude(outcome=Run.Outcome.SUCCEEDED) if value else qs


class LengthSieve(Sieve):
    """A sieve over LengthField."""

    field_class = LengthField


class ChoiceSieve(Sieve, django_filters.ChoiceFilter):  # type: ignore[misc]
    """A sieve over a list of choices."""


class NumberSieve(Sieve, django_filters.NumberFilter):  # type: ignore[misc]
    """A sieve over a number."""


class TenantFilter(Sieve):
    """Any of the tenants: by id, which has the index; those removed since are sifted by slug."""

    field_class = WordsField

    def __init__(self, *, slug: str = "tenant", **more: Any) -> None:
        """`slug`: the column that has the slug as it was."""
        super().__init__(condition=self._sieve, **more)
        self._slug = slug
        self._found: tuple[list[str], dict[str, int]] = ([], {})

    def filter(self, qs: QuerySet[Any], value: list[str]) -> QuerySet[Any]:
        """Rows of these tenants, where all of them exist."""
        ids = sorted(self._known(value).values())
        if not value or len(ids) < len(value):
            return qs
        # Equality lets the index of one tenant give the order too.
        one = len(ids) == 1
        return qs.filter(tenant_id=ids[0]) if one else qs.filter(tenant_id__in=ids)

    def _sieve(self, value: list[str]) -> Q | None:
        known = self._known(value)
        gone = [slug for slug in value if slug not in known]
        if not gone:
            return None
        return Q(tenant_id__in=sorted(known.values())) | Q(
            **{f"{self._slug}__in": gone}
        )

    def _known(self, value: list[str]) -> dict[str, int]:
        """The ids of those that exist, asked once."""
        if value and self._found[0] != value:
            self._found = (value, names().tenant_ids(value))
        return self._found[1] if value else {}


class LengthFilter(django_filters.Filter):  # type: ignore[misc]
    """A filter over LengthField; `method` compares."""

    field_class = LengthField


class MomentFilter(django_filters.Filter):  # type: ignore[misc]
    """A bound of a time column, `lookup_expr` gte or lt."""

    field_class = MomentField

    def filter(self, qs: QuerySet[Any], value: Moment | None) -> QuerySet[Any]:
        """Rows on the right side of the moment."""
        if not value:
            return qs
        asked_at: datetime | None = self.parent.asked_at
        at = asked_at - value.back if asked_at and value.back else value.at
        return qs.filter(**{f"{self.field_name}__{self.lookup_expr}": at})


class Filters(django_filters.FilterSet):  # type: ignore[misc]
    """Filters whose bad values are refused one by one, with chips for what is set."""

    asked_at: datetime | None = None  # "24 h" counts back from here; None: from now

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What can be read filters; what cannot is only refused."""
        for name, value in self.form.cleaned_data.items():
            queryset = self.filters[name].filter(queryset, value)
        return queryset

    @property
    def walked(self) -> QuerySet[Any]:
        """The rows that an index finds; those that match are among them, and `sieve` tells which."""
        found: QuerySet[Any] = self.queryset.all()
        if not self.is_bound:
            return found
        self.errors  # noqa: B018 - reading it cleans the form
        return self.filter_queryset(found)

    @property
    def sieve(self) -> Q | None:
        """What no index serves of what is asked; None: nothing."""
        asked = [
            condition
            for name, each in self.filters.items()
            if isinstance(each, Sieve)
            and (value := self._cleaned(name))
            and (condition := each.condition(value)) is not None
        ]
        return Q(*asked) if asked else None

    @property
    def qs(self) -> QuerySet[Any]:
        """The rows that match, for a form that is half readable too."""
        walked, sieve = self.walked, self.sieve
        return walked if sieve is None else walked.filter(sieve)

    def _cleaned(self, name: str) -> Any:
        """What was asked of one filter; None: nothing, or nothing that can be read."""
        if not self.is_bound:
            return None
        self.errors  # noqa: B018 - reading it cleans the form
        return self.form.cleaned_data.get(name)

    @property
    def chips(self) -> list[Chip]:
        """What is set and was understood, in the order of the form."""
        found = ((name, self._cleaned(name)) for name in self.filters)
        return [
            Chip(
                name=name,
                label=self.filters[name].label,
                value=self.words(name, value),
                without=self.without(name),
            )
            for name, value in found
            if value
        ]

    def words(self, name: str, value: Any) -> str:
        """What stands on the chip of a value."""
        if isinstance(value, Moment):
            return self._moment(name, value)
        if isinstance(value, timedelta):
            return f"{name.rpartition('_')[2]} {words.duration(value)}"
        choices = dict(getattr(self.form.fields[name], "choices", ()))
        said = value if isinstance(value, list | tuple) else [value]
        return ", ".join(str(choices.get(each, each)) for each in said)

    def without(self, name: str) -> str:
        """The query string without one filter, and without the place in the list."""
        left = self.data.copy()
        for gone in (name, *CURSORS):
            left.pop(gone, None)
        return f"?{left.urlencode()}"

    def at(self, **cursor: str) -> str:
        """The query string of another place in the same list."""
        there = self.data.copy()
        for gone in (*CURSORS, *cursor):
            there.pop(gone, None)
        there.update({name: value for name, value in cursor.items() if value})
        return f"?{there.urlencode()}"

    def _moment(self, name: str, value: Moment) -> str:
        if value.back is not None:
            length_of = words.duration(value.back)
            return (
                f"in the last {length_of}"
                if name == "since"
                else f"over {length_of} ago"
            )
        local = timezone.localtime(value.at)
        return f"{'from' if name == 'since' else 'before'} {local:%Y-%m-%d %H:%M}"


class RunFilters(Filters):
    """What Scheduler Audit Logs can be asked."""

    text = ErrorSieve(label="Error", condition=lambda text: Q(error__icontains=text))
    result = TextSieve(
        label="Result", condition=lambda text: Q(summary__icontains=text)
    )
    tenant = TenantFilter(label="Tenant")
    handler = WordsFilter(label="Handler")
    outcome = django_filters.MultipleChoiceFilter(
        label="Outcome",
        choices=Run.Outcome,
        widget=forms.CheckboxSelectMultiple,
        distinct=False,
    )
    # The process as it is written: host, or host and pid.
    worker = TextSieve(label="Worker", condition=lambda text: Q(node__istartswith=text))
    trigger = ChoiceSieve(
        label="Trigger",
        choices=[
            ("slot", "Slot"),
            ("start", "Start"),
            ("operator", "Operator"),
            ("call", "Call"),
        ],
        empty_label="Any",
        condition=lambda trigger: Q(trigger=trigger),
    )
    since = MomentFilter(label="Finished", field_name="finished_at", lookup_expr="gte")
    until = MomentFilter(label="Finished", field_name="finished_at", lookup_expr="lt")
    ran_over = LengthSieve(
        label="Ran",
        condition=lambda length: Q(finished_at__gte=F("started_at") + length),
    )
    ran_under = LengthSieve(
        label="Ran",
        condition=lambda length: Q(finished_at__lt=F("started_at") + length),
    )
    waited_over = LengthSieve(
        label="Waited",
        condition=lambda length: (
            lengths.WAIT_KNOWN & Q(claimed_at__gte=F("enqueued_at") + length)
        ),
    )
    tick = NumberSieve(
        label="Tick",
        min_value=1,
        max_value=2**63 - 1,
        condition=lambda tick: Q(tick_id=tick),
    )

    class Meta:
        model = Run
        fields: list[str] = []


class ChangeFilters(Filters):
    """What Changes can be asked."""

    text = TextSieve(
        label="Text",
        condition=lambda text: Q(subject__icontains=text) | Q(why__icontains=text),
    )
    who = TextSieve(label="Who", condition=lambda name: Q(who__iexact=name))
    origin = ChoiceSieve(
        label="From",
        choices=Change.Origin,
        empty_label="Anywhere",
        condition=lambda origin: Q(origin=origin),
    )
    subject = TextSieve(
        label="Subject", condition=lambda text: Q(subject__istartswith=text)
    )
    verb = TextSieve(label="Verb", condition=lambda verb: Q(verb__iexact=verb))
    since = MomentFilter(label="When", field_name="at", lookup_expr="gte")
    until = MomentFilter(label="When", field_name="at", lookup_expr="lt")

    class Meta:
        model = Change
        fields: list[str] = []
