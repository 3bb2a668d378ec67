"""What lists of the ledger can be asked: one set of filters per list, over the URL.

Every filter combines with every other (AND) and stands in the query string, so a
filtered list is a link. What cannot be read is refused with a sentence under its
field, and filters nothing.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import django_filters
from django import forms
from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from audit import clock, words
from audit.models import Change, Run
from audit.names import names

CURSORS = ("newer", "older")  # the place in the list: filters start at the newest again
UNITS = {
    "ms": 0.001,
    "s": 1,
    "sec": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}  # seconds
_LENGTH = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*([a-z]{1,3})\s*", re.ASCII)
RAN = ExpressionWrapper(
    F("finished_at") - F("started_at"), output_field=DurationField()
)
WAITED = ExpressionWrapper(
    F("claimed_at") - F("enqueued_at"), output_field=DurationField()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One filter that is set, in words, and the address without it."""

    name: str  # the parameter
    label: str
    value: str
    without: str  # query string without it, "" or "?..."


def length(text: str) -> timedelta:
    """A length of time as people write it: 50ms, 2.5 s, 10 min, 24h, 7d. ValueError if it is none."""
    match = _LENGTH.fullmatch(text.lower())
    if match is None or match[2] not in UNITS:
        raise ValueError(f"{text!r} is no length of time")
    return timedelta(seconds=float(match[1]) * UNITS[match[2]])


class VisibleTextField(forms.CharField):
    """Text as the ledger keeps it: a NUL is looked for as the sign that stands for it."""

    def to_python(self, value: Any) -> str:
        """The text with what cannot be stored replaced, as `audit.text` does."""
        shown = (value or "").replace("\x00", "\u2400")
        return super().to_python(shown.encode("utf-8", "replace").decode()) or ""


class WordsField(VisibleTextField):
    """Words with commas between them; each stands for itself."""

    def clean(self, value: Any) -> list[str]:
        """The words, without blanks around them, each once."""
        return list(
            dict.fromkeys(
                word
                for part in super().clean(value).split(",")
                if (word := part.strip())
            )
        )


class LengthField(VisibleTextField):
    """A length of time: `50ms`, `2s`, `10 min`."""

    def clean(self, value: Any) -> timedelta | None:
        """The length, or None where the field is empty."""
        text = super().clean(value)
        try:
            return length(text) if text else None
        except (ValueError, OverflowError):
            raise forms.ValidationError(
                f"“{text}” is no length of time. Write for example 50 ms, 2 s, 10 min or 24 h."
            ) from None


class MomentField(VisibleTextField):
    """A moment: an ISO time in the page's zone, or a length of time before now."""

    def clean(self, value: Any) -> "Moment | None":
        """The moment with the words it was asked by, or None where the field is empty."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return Moment(at=clock.now() - (back := length(text)), back=back, text=text)
        except (ValueError, OverflowError):
            pass
        try:
            found = parse_datetime(
                text if re.search(r"[T ]", text) else f"{text} 00:00"
            )
        except ValueError:  # well formed, and no day of the calendar
            found = None
        if found is None:
            raise forms.ValidationError(
                f"“{text}” is no moment. Write 24 h or 7 d for that long ago, or a time such as 2026-11-29 14:00."
            )
        aware = found if timezone.is_aware(found) else timezone.make_aware(found)
        return Moment(at=aware, back=None, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A bound of a time range, and how it was asked for."""

    at: datetime
    back: timedelta | None  # set: so long before now
    text: str


class TextFilter(django_filters.CharFilter):  # type: ignore[misc]
    """A filter over VisibleTextField."""

    field_class = VisibleTextField


class WordsFilter(django_filters.Filter):  # type: ignore[misc]
    """Any of the words; `field_name` is the column."""

    field_class = WordsField

    def filter(self, qs: QuerySet[Any], value: list[str]) -> QuerySet[Any]:
        """Rows whose column is one of the words."""
        return qs.filter(**{f"{self.field_name}__in": value}) if value else qs


class TenantFilter(WordsFilter):
    """Any of the tenants: by id, which has the index, and by the slug of those removed since."""

    def filter(self, qs: QuerySet[Any], value: list[str]) -> QuerySet[Any]:
        """Rows of these tenants."""
        if not value:
            return qs
        ids = names().tenant_ids(value)
        gone = [slug for slug in value if slug not in ids]
        mine = Q(tenant_id__in=sorted(ids.values()))
        return qs.filter(mine | Q(tenant__in=gone) if gone else mine)


class LengthFilter(django_filters.Filter):  # type: ignore[misc]
    """A filter over LengthField; `method` compares."""

    field_class = LengthField


class MomentFilter(django_filters.Filter):  # type: ignore[misc]
    """A bound of a time column, `lookup_expr` gte or lt."""

    field_class = MomentField

    def filter(self, qs: QuerySet[Any], value: Moment | None) -> QuerySet[Any]:
        """Rows on the right side of the moment."""
        return (
            qs.filter(**{f"{self.field_name}__{self.lookup_expr}": value.at})
            if value
            else qs
        )


class Filters(django_filters.FilterSet):  # type: ignore[misc]
    """Filters whose bad values are refused one by one, with chips for what is set."""

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """What can be read filters; what cannot is only refused."""
        for name, value in self.form.cleaned_data.items():
            queryset = self.filters[name].filter(queryset, value)
        return queryset

    @property
    def qs(self) -> QuerySet[Any]:
        """The rows that match, for a form that is half readable too."""
        found: QuerySet[Any] = self.queryset.all()
        if not self.is_bound:
            return found
        self.errors  # noqa: B018 - reading it cleans the form
        return self.filter_queryset(found)

    @property
    def chips(self) -> list[Chip]:
        """What is set and was understood, in the order of the form."""
        if not self.is_bound:
            return []
        self.errors  # noqa: B018 - reading it cleans the form
        found = ((name, self.form.cleaned_data.get(name)) for name in self.filters)
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
        for gone in CURSORS:
            there.pop(gone, None)
        there.update(cursor)
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

    text = TextFilter(label="Text", method="with_text")
    tenant = TenantFilter(label="Tenant")
    handler = WordsFilter(label="Handler")
    outcome = django_filters.MultipleChoiceFilter(
        label="Outcome", choices=Run.Outcome, widget=forms.CheckboxSelectMultiple
    )
    worker = TextFilter(label="Worker", method="by_worker")
    trigger = django_filters.ChoiceFilter(
        label="Trigger",
        choices=[
            ("slot", "Slot"),
            ("start", "Start"),
            ("operator", "Operator"),
            ("call", "Call"),
        ],
        empty_label="Any",
    )
    since = MomentFilter(label="Finished", field_name="finished_at", lookup_expr="gte")
    until = MomentFilter(label="Finished", field_name="finished_at", lookup_expr="lt")
    ran_over = LengthFilter(label="Ran", method="by_length")
    ran_under = LengthFilter(label="Ran", method="by_length")
    waited_over = LengthFilter(label="Waited", method="by_length")
    tick = django_filters.NumberFilter(
        label="Tick", field_name="tick_id", min_value=1, max_value=2**63 - 1
    )

    class Meta:
        model = Run
        fields: list[str] = []

    def with_text(self, qs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        """Runs whose error or result has the text in it."""
        return qs.filter(Q(error__icontains=value) | Q(summary__icontains=value))

    def by_worker(self, qs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        """Runs of processes whose name starts like this: host, or host and pid."""
        return qs.filter(node__istartswith=value)

    def by_length(
        self, qs: QuerySet[Run], name: str, value: timedelta
    ) -> QuerySet[Run]:
        """Runs that ran or waited for longer, or shorter, than a length of time."""
        what, _, side = name.partition("_")
        measured = qs.alias(length=RAN if what == "ran" else WAITED)
        return measured.filter(
            **{"length__gte" if side == "over" else "length__lt": value}
        )


class ChangeFilters(Filters):
    """What Changes can be asked."""

    text = TextFilter(label="Text", method="with_text")
    who = TextFilter(label="Who", lookup_expr="iexact")
    origin = django_filters.ChoiceFilter(
        label="From", choices=Change.Origin, empty_label="Anywhere"
    )
    subject = TextFilter(label="Subject", lookup_expr="istartswith")
    verb = TextFilter(label="Verb", lookup_expr="iexact")
    since = MomentFilter(label="When", field_name="at", lookup_expr="gte")
    until = MomentFilter(label="When", field_name="at", lookup_expr="lt")

    class Meta:
        model = Change
        fields: list[str] = []

    def with_text(
        self, qs: QuerySet[Change], name: str, value: str
    ) -> QuerySet[Change]:
        """Changes whose subject or reason has the text in it."""
        return qs.filter(Q(subject__icontains=value) | Q(why__icontains=value))
