"""tables: lists of the ledger as django-tables2 tables in the house look.

A row is a plain object with what its cells show; nothing here asks the database.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import django_tables2
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from audit import drawings, lengths, words
from audit.models import Change, Run
from audit.rows import LateRow
from audit.sorting import Sort
from audit.templatetags import millrace

# Their "error" is a sentence of ours about what somebody, or silence, did.
SAID = (Run.Outcome.CANCELLED, Run.Outcome.ABANDONED)
BAR = 64  # px, the run-time bar
# As JSON keeps it: told like other times.
MOMENT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
)
TEXT_SHOWN = 600  # characters of an error or result in a list; its page has the whole


class Table(django_tables2.Table):  # type: ignore[misc]
    """A list in the house look: hairlines, and rows that fold at 390 px."""

    caption = ""
    heads: dict[str, "Head"] = {}  # of the columns that sort the list

    class Meta:
        template_name = "audit/table.html"
        orderable = False

    def __init__(self, rows: Iterable[Any], *, now: datetime, **more: Any) -> None:
        """`now`: the instant that all ages of the page are counted from."""
        super().__init__(list(rows), **more)
        self.now = now

    @property
    def body(self) -> Iterator[tuple[Any, SafeString]]:
        """Each row with its cells. The library asks for the signature of every cell's method
        anew, which is half the time of a page of 50 rows; here all take the record alone."""
        columns = [
            (column.attrs["td"].as_html(), getattr(self, f"render_{column.name}"))
            for column in self.columns
        ]
        for record in self.data:
            cells = ((attributes, render(record)) for attributes, render in columns)
            yield record, format_html_join("", "<td {}>{}</td>", cells)

    def when(self, moment: datetime | None) -> str:
        """A relative time with the exact one under the pointer."""
        return millrace.when({"now": self.now}, moment)


def column(
    label: str,
    *,
    td: str = "",
    th: str = "",
    newest_first: bool = False,
    hidden: bool = False,
) -> django_tables2.Column:
    """A column: its head, the classes of its cells, and the label that they carry when folded.

    `hidden`: the head is there for screen readers only.
    """
    cell = {"data-label": label, **({"class": td} if td else {})}
    head = {
        "scope": "col",
        **({"class": th} if th else {}),
        **({"aria-sort": "descending"} if newest_first else {}),
    }
    said = f"{label} \u2193" if newest_first else label
    made = django_tables2.Column(
        verbose_name=said, empty_values=(), attrs={"td": cell, "th": head}
    )
    made.head_hidden = hidden
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run with what its row says besides."""

    run: Run
    title: str  # of its handler
    median: timedelta | None  # of its handler's recent runs
    late: LateRow | None  # its late result
    later: Run | None  # the newest finished attempt of the same item after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column's head that sorts the list."""

    text: str
    sorted: str  # "" | ascending | descending: the list is in this order
    address: str  # what a click leads to


class RunTable(Table):
    """Scheduler Audit Logs."""

    finished = column("Finished", td="end nl mr-nowrap")
    outcome = column("Outcome", td="first nl")
    handler = column("Handler", td="w")
    tenant = column("Tenant", td="nl name")
    waited = column("Waited", td="n", th="n")
    ran = column("Ran", td="n", th="n")
    drawn = column("Ran, drawn", td="mr-hide", hidden=True)
    result = column("Result", td="w last", th="wide")
    worker = column("Worker", td="name")

    class Meta(Table.Meta):
        pass

    def __init__(
        self,
        rows: Iterable[Any],
        *,
        sort: Sort,
        address: Callable[..., str],
        **more: Any,
    ) -> None:
        """`address`: the query string of this list with other parameters."""
        super().__init__(rows, **more)
        self.sort, self.caption = sort, f"Runs, {sort.label.lower()}"
        shown = sort.shown.removesuffix("_at").title()
        other = "" if sort.name == "oldest" else "oldest"
        self.heads = {
            "finished": Head(
                text=shown,
                sorted="" if sort.shown != sort.by else _way(sort),
                address=address(sort=other if sort.whole else ""),
            ),
            "waited": Head(
                text="Waited",
                sorted=_way(sort) if sort.by == "waited" else "",
                address=address(sort="waited"),
            ),
            "ran": Head(
                text="Ran",
                sorted=_way(sort) if sort.by == "ran" else "",
                address=address(sort="ran"),
            ),
        }

    def render_finished(self, record: RunLine) -> SafeString:
        """The time, which is the link to the run's page."""
        address = reverse("admin:run", args=[record.run.id])
        moment = getattr(record.run, self.sort.shown)
        return format_html('<a href="{}">{}</a>', address, self.when(moment))

    def render_outcome(self, record: RunLine) -> SafeString:
        """Icon and word."""
        return millrace.status(record.run.outcome)

    def render_handler(self, record: RunLine) -> SafeString:
        """Title, and the key under it."""
        return handler_cell(title=record.title, key=record.run.handler)

    def render_tenant(self, record: RunLine) -> str:
        """The slug as it was."""
        return words.shown(record.run.tenant)

    def render_waited(self, record: RunLine) -> str:
        """From enqueued until claimed, of a first attempt."""
        return words.duration(lengths.waited(record.run))

    def render_ran(self, record: RunLine) -> str:
        """From the start to the end."""
        return words.duration(lengths.ran(record.run))

    def render_drawn(self, record: RunLine) -> SafeString | str:
        """The run-time bar."""
        took = lengths.ran(record.run)
        return (
            bar(took, outcome=record.run.outcome, median=record.median)
            if took is not None
            else ""
        )

    def render_result(self, record: RunLine) -> SafeString:
        """What came of it, and what came after."""
        below = [_late(record), self._later(record)]
        subs = mark_safe("".join(below))  # noqa: S308 - parts made by format_html
        return format_html("<div>{}{}</div>", result(record.run), subs)

    def render_worker(self, record: RunLine) -> str:
        """The process: host and pid."""
        return words.shown(record.run.node) or words.UNKNOWN

    def _later(self, record: RunLine) -> str:
        if record.later is None:
            return ""
        word = words.STATES[record.later.outcome].word.lower()
        return format_html(
            '<span class="sub">attempt {}; <a href="{}">attempt {}</a> {} {}</span>',
            record.run.attempt,
            reverse("admin:run", args=[record.later.id]),
            record.later.attempt,
            word,
            self.when(record.later.finished_at),
        )


class ChangeTable(Table):
    """What operators changed."""

    at = column("When", td="end nl mr-nowrap", newest_first=True)
    who = column("Who", td="first nl")
    what = column("What", td="w")
    change = column("Old and new", td="w")
    why = column("Why", td="w last", th="wide")

    caption = "Changes, newest first"

    class Meta(Table.Meta):
        pass

    def render_at(self, record: Change) -> str:
        """When."""
        return self.when(record.at)

    def render_who(self, record: Change) -> SafeString:
        """Who, and from where."""
        return format_html(
            '<div>{}<span class="sub">{}</span></div>',
            words.shown(record.who),
            words.shown(record.origin),
        )

    def render_what(self, record: Change) -> SafeString:
        """The verb and what it was done to."""
        subject, verb = words.shown(record.subject), words.shown(record.verb)
        return format_html('<div>{}<code class="mr-key">{}</code></div>', verb, subject)

    def render_change(self, record: Change) -> SafeString:
        """Old struck out, new beside it; of two objects only what differs."""
        return difference(record.old, record.new)

    def render_why(self, record: Change) -> str:
        """The reason as it was given."""
        return (
            f"“{words.shown(record.why, limit=TEXT_SHOWN)}”"
            if record.why
            else words.UNKNOWN
        )


def _way(sort: Sort) -> str:
    return "ascending" if sort.ascending else "descending"


def handler_cell(*, title: str, key: str) -> SafeString:
    """A handler: the name that operators know, and its key under it."""
    below = (
        format_html('<code class="mr-key">{}</code>', words.shown(key))
        if title != key
        else ""
    )
    return format_html("<div>{}{}</div>", words.shown(title), below)


def result(run: Run) -> SafeString:
    """The sentence, and the error whole and in monospace."""
    sentence, error = (
        words.shown(run.summary, limit=TEXT_SHOWN),
        words.shown(run.error, limit=TEXT_SHOWN),
    )
    if not error:
        return format_html(
            "{}",
            sentence or ("no change" if run.outcome == "succeeded" else words.UNKNOWN),
        )
    if run.outcome in SAID:
        return format_html("{}", f"{sentence}: {error}" if sentence else error)
    said = format_html('<span class="err">{}</span>', error)
    return format_html("{}: {}", sentence, said) if sentence else said


def bar(took: timedelta, *, outcome: str, median: timedelta | None) -> SafeString:
    """A run time on a logarithm from 10 ms to 1 h, with a tick at the handler's median."""
    fill = drawings.TONES.get(outcome, "f-bar")
    mark = ""
    if median is not None:
        at = scaled(median)
        mark = format_html(
            '<rect class="f-bg" x="{}" width="4" height="8"/><rect class="f-bar" x="{}" width="1.5" height="8"/>',
            max(at - 1, 0),
            at,
        )
    return format_html(
        '<svg class="mr-svg inline" width="64" height="8" viewBox="0 0 64 8" aria-hidden="true">'
        '<rect class="f-track" y="1" width="64" height="6" rx="1.5"/>'
        '<rect class="{}" y="1" width="{}" height="6" rx="1.5"/>{}</svg>',
        fill,
        max(scaled(took), 1),
        mark,
    )


def scaled(span: timedelta) -> int:
    """Where a length of time stands on the bar, in px."""
    return round(BAR * drawings.scale(span))


def difference(old: object, new: object) -> SafeString:
    """Two values as struck out and new; of two objects only the keys that differ."""
    if not (isinstance(old, dict | None) and isinstance(new, dict | None)):
        return _pair("", old, new)
    before, after = old or {}, new or {}
    keys = [
        key
        for key in {**before, **after}
        if _told(before.get(key)) != _told(after.get(key))
    ]
    parts = [_pair(str(key), before.get(key), after.get(key)) for key in keys]
    return mark_safe("".join(parts)) if parts else format_html("{}", words.UNKNOWN)  # noqa: S308 - made by format_html


def _pair(key: str, old: object, new: object) -> SafeString:
    name = format_html("<code>{}</code> ", words.shown(key)) if key else ""
    gone = "" if old in (None, "") else format_html("<del>{}</del> ", _value(old))
    come = "" if new in (None, "") else format_html("<ins>{}</ins>", _value(new))
    return format_html("<div>{}{}{}</div>", name, gone, come)


def _told(value: object) -> object:
    """Nothing and an empty text are the same to a reader."""
    return None if value == "" else value


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str) and MOMENT.fullmatch(value):
        with suppress(ValueError, OverflowError):  # the 31st of February
            return words.exact(datetime.fromisoformat(value))
    return words.shown(str(value))


def _late(record: RunLine) -> SafeString | str:
    if record.late is None:
        return ""
    return format_html(
        '<span class="sub">{}</span>',
        millrace.status(
            "late",
            f"Its result came late, at {timezone.localtime(record.late.arrived_at):%H:%M:%S}, and does not count",
        ),
    )
