"""terms: who was master when, as a drawing and a sentence.

Terms come from the ledger's node events, so that they outlive the nodes. A term ends
where its node resigned, lost the lease or fell silent; the time until the next one
began is time without a master.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audit import drawings, queries, words
from audit.rows import TermRow
from scheduler.servers import Mastership
from workqueue.models import Node

WIDTH, RIGHT, ROW, TOP = 1110, 1100, 28, 18  # pixels
MARKS = 8  # stretches between two times on the axis
MOST_ROWS = 12  # machines drawn; the others are counted in words
NAME = 22  # characters of a name that are shown
LETTER = 6.4  # pixels, of the drawing's type


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time that can be chosen."""

    key: str  # in the address
    word: str
    length: timedelta


SPANS = (
    Span("24h", "24 h", timedelta(days=1)),
    Span("7d", "7 d", timedelta(days=7)),
    Span("30d", "30 d", timedelta(days=30)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A term, as far as it lies in the span."""

    term: int
    node: str
    since: datetime
    until: datetime
    holds: bool  # now


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Time without a master."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        """How long it was."""
        return self.until - self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the card shows."""

    terms: tuple[Held, ...]
    gaps: tuple[Gap, ...]
    sentence: str
    drawn: SafeString


def span(key: str) -> Span:
    """The chosen one, or a day."""
    return next((one for one in SPANS if one.key == key), SPANS[0])


def history(master: Mastership, *, span: Span, now: datetime) -> History:
    """The terms of a span that ends now, oldest first. Two statements at most."""
    since = now - span.length
    rows = sorted(queries.terms(since=since), key=lambda row: row.term)
    former = {row.node_id for row in rows[:-1]}
    nodes = Node.objects.filter(id__in=former)
    beats = dict(nodes.values_list("id", "heartbeat_at")) if former else {}
    held = tuple(_held(rows, master, beats, since=since, now=now))
    gaps = tuple(_gaps(held, master, now=now))
    return History(
        terms=held,
        gaps=gaps,
        sentence=_sentence(held, gaps),
        drawn=_draw(held, gaps, since=since, now=now),
    )


def _held(
    rows: Sequence[TermRow],
    master: Mastership,
    beats: Mapping[UUID, datetime],
    *,
    since: datetime,
    now: datetime,
) -> list[Held]:
    found = []
    for place, row in enumerate(rows):
        until = _until(row, rows[place + 1 : place + 2], master, beats, now=now)
        if until > since:
            found.append(
                Held(
                    term=row.term,
                    node=words.shown(row.node, limit=80),
                    since=max(row.began_at, since),
                    until=until,
                    holds=master.held and row.term == master.term,
                )
            )
    return found


def _until(
    row: TermRow,
    following: Sequence[TermRow],
    master: Mastership,
    beats: Mapping[UUID, datetime],
    *,
    now: datetime,
) -> datetime:
    """Where a term ended: by its own event, its lease, the next election, or not yet.

    One that died without a word renewed for the last time with its last beat.
    """
    if row.term == master.term and master.held:
        return now
    ends = [row.ended_at, *(later.began_at for later in following)]
    if row.term == master.term:
        ends.append(master.expires_at)
    elif last := beats.get(row.node_id):
        ends.append(max(last, row.began_at))
    return min([now, *(end for end in ends if end is not None)])


def _gaps(held: Sequence[Held], master: Mastership, *, now: datetime) -> list[Gap]:
    found = [
        Gap(since=one.until, until=following.since)
        for one, following in pairwise(held)
        if following.since > one.until
    ]
    if held and not master.held and now > held[-1].until:
        found.append(Gap(since=held[-1].until, until=now))
    return found


def _sentence(held: Sequence[Held], gaps: Sequence[Gap]) -> str:
    without = sum((gap.length for gap in gaps), timedelta())
    count = words.plural(len(held), "term")
    return (
        f"{count}, {words.duration(_whole(without))} without one"
        if without >= timedelta(seconds=1)
        else count
    )


def _whole(length: timedelta) -> timedelta:
    """To the second, from ten seconds on."""
    return (
        length
        if length < timedelta(seconds=10)
        else timedelta(seconds=round(length.total_seconds()))
    )


def _draw(
    held: Sequence[Held], gaps: Sequence[Gap], *, since: datetime, now: datetime
) -> SafeString:
    if not held:
        return SafeString("")
    newest_first = dict.fromkeys(one.node for one in reversed(held))
    nodes = sorted(list(newest_first)[:MOST_ROWS])
    left = max(70.0, 12 + max(len(_short(node)) for node in nodes) * LETTER)
    canvas = _Canvas(
        since=since,
        now=now,
        left=left,
        places={node: TOP + 2 + place * ROW for place, node in enumerate(nodes)},
    )
    bottom = TOP + len(nodes) * ROW + 2
    parts = [canvas.axis(bottom), *(canvas.row(node) for node in nodes)]
    parts += [canvas.term(one) for one in held if one.node in canvas.places]
    parts += [
        canvas.gap(gap, bottom) for gap in gaps if gap.length >= timedelta(seconds=2)
    ]
    height = bottom + 20
    return format_html(
        '<svg class="mr-svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}</svg>',
        WIDTH,
        height,
        _said(held, gaps),
        format_html_join("", "{}", ((part,) for part in parts)),
    )


def _said(held: Sequence[Held], gaps: Sequence[Gap]) -> str:
    said = [
        f"{one.node} term {one.term} "
        + (f"since {_clock(one.since)}" if one.holds else f"until {_clock(one.until)}")
        for one in held[-MOST_ROWS:]
    ]
    said += [
        f"no master for {words.duration(_whole(gap.length))} at {_clock(gap.since)}"
        for gap in gaps[-MOST_ROWS:]
    ]
    return "Who was master: " + ", ".join(said)


def _short(node: str) -> str:
    return node if len(node) <= NAME else f"{node[: NAME - 1]}\u2026"


def _clock(moment: datetime) -> str:
    return f"{timezone.localtime(moment):%H:%M:%S}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Canvas:
    """Where things stand in the drawing."""

    since: datetime
    now: datetime
    left: float  # pixels, where the time axis begins
    places: dict[str, float]  # node -> top of its row

    def x(self, moment: datetime) -> float:
        """Where a moment stands."""
        share = (moment - self.since) / (self.now - self.since)
        return self.left + min(max(share, 0.0), 1.0) * (RIGHT - self.left)

    def axis(self, bottom: float) -> SafeString:
        """Lines and times."""
        long = self.now - self.since > timedelta(days=2)
        marks = []
        for place in range(MARKS + 1):
            moment = timezone.localtime(
                self.since + (self.now - self.since) * place / MARKS
            )
            text = f"{moment.day} {moment:%b}" if long else f"{moment:%H:%M}"
            anchor = "end" if place == MARKS else "middle"
            at = f"{self.x(moment):.1f}"
            marks.append((at, at, bottom, at, bottom + 14, anchor, text))
        form = '<line class="l-line" x1="{}" x2="{}" y1="10" y2="{}"/><text x="{}" y="{}" text-anchor="{}">{}</text>'
        return format_html_join("", form, marks)

    def row(self, node: str) -> SafeString:
        """A node's name and its empty track."""
        top = self.places[node]
        track = drawings.rectangles(
            [("f-track", self.left, top + 4, RIGHT - self.left, 8.0)], rounded=1
        )
        return format_html(
            '<text class="on b" x="0" y="{}">{}</text>{}',
            top + 12,
            _short(node),
            track,
        )

    def term(self, one: Held) -> SafeString:
        """A bar, with its text inside where it is wide enough and beside it where there is room."""
        top, start = self.places[one.node], self.x(one.since)
        width = max(self.x(one.until) - start, 3.0)
        kind = "f-accent" if one.holds else "f-bar"
        length = words.duration(_whole(one.until - one.since))
        text = (
            f"term {one.term}, since {_clock(one.since)}"
            if one.holds
            else f"term {one.term}"
        )
        bar = drawings.rectangles([(kind, start, top - 2, width, 20.0)], rounded=2)
        title = format_html("<title>term {}, {}</title>", one.term, length)
        label = SafeString("")
        if width > len(text) * LETTER + 16:
            tone = "b inv" if one.holds else "b on"
            label = format_html(
                '<text class="{}" x="{}" y="{}">{}</text>',
                tone,
                f"{start + 8:.1f}",
                top + 12,
                text,
            )
        return format_html("<g>{}{}{}</g>", title, bar, label)

    def gap(self, gap: Gap, bottom: float) -> SafeString:
        """A red line where there was no master, and for how long."""
        at = self.x(gap.since)
        text = (
            f"no master for {words.duration(_whole(gap.length))} at {_clock(gap.since)}"
        )
        right = at - self.left > len(text) * LETTER
        return format_html(
            '<line class="l-fail" x1="{0}" x2="{0}" y1="6" y2="{1}"/>'
            '<text class="fail" x="{2}" y="12" text-anchor="{3}">{4}</text>',
            f"{at:.1f}",
            bottom,
            f"{at - 6 if right else at + 6:.1f}",
            "end" if right else "start",
            text,
        )
