"""tables: the list of ticks: what each enqueued, and what it did not and why."""

from collections.abc import Iterator
from datetime import timedelta

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audit import tables, words
from audit.tables import column
from audit.templatetags import millrace
from scheduler.models import Tick
from workqueue import registry

LATE = timedelta(seconds=10)  # a warning from here on
TRIGGERS = {"slot": "Slot", "start": "Start", "operator": "Run now"}


class TickTable(tables.Table):
    """Ticks, newest first."""

    handler = column("Handler", td="w")
    slot = column("Slot", td="first nl nw", newest_first=True)
    trigger = column("Trigger", td="nl")
    late = column("Late", td="n", th="n")
    enqueued = column("Enqueued", td="n", th="n")
    left_out = column("Not enqueued, and why", td="w last", th="wide")
    term = column("Term", td="n", th="n")

    caption = "Ticks, newest first"
    wide = True

    class Meta(tables.Table.Meta):
        pass

    def render_handler(self, record: Tick) -> SafeString:
        """The title, which leads to its row of the timetable, and the key."""
        title = words.shown(registry.title(record.handler))
        known = record.handler in registry.rows()
        address = reverse("admin:timetable_row", args=[record.handler]) if known else ""
        name = format_html('<a href="{}">{}</a>', address, title) if known else title
        below = (
            format_html('<code class="mr-key">{}</code>', words.shown(record.handler))
            if known
            else ""
        )
        return format_html("<div>{}{}</div>", name, below)

    def render_slot(self, record: Tick) -> str:
        """The instant that it stands for."""
        return millrace.clock({"now": self.now}, record.slot)

    def render_trigger(self, record: Tick) -> SafeString:
        """What caused it; who asked and why, for a run now."""
        word = TRIGGERS.get(record.trigger, record.trigger)
        if not record.who:
            return format_html("{}", word)
        why = (
            f": \u201c{words.shown(record.why, limit=300)}\u201d" if record.why else ""
        )
        return format_html(
            '<div>{}<span class="sub"><bdi>by {}{}</bdi></span></div>',
            word,
            words.shown(record.who),
            why,
        )

    def render_late(self, record: Tick) -> str:
        """From its slot until it was written."""
        late = timedelta(milliseconds=record.lateness_ms)
        text = words.duration(late)
        return millrace.status("skewed", text) if late > LATE else text

    def render_enqueued(self, record: Tick) -> SafeString | str:
        """How many items, which lead to their runs."""
        if not record.enqueued:
            return "0"
        return format_html(
            # No index has the ticks of runs: from its time on they are found at once.
            '<a href="{}?tick={}&amp;since={}&amp;sort=oldest">{}</a>',
            reverse("admin:runs"),
            record.pk,
            words.iso(record.at),
            words.number(record.enqueued),
        )

    def render_left_out(self, record: Tick) -> SafeString:
        """Tenants without an item by reason, and slots that nobody ticked."""
        reasons = format_html_join(", ", '<span class="{}">{}</span>', _reasons(record))
        slots = ", ".join(_slots(record))
        below = format_html('<span class="sub">{}</span>', slots) if slots else ""
        return (
            format_html("<div>{}{}</div>", reasons, below)
            if reasons or slots
            else format_html("{}", words.UNKNOWN)
        )

    def render_term(self, record: Tick) -> str:
        """Under which master's term."""
        return words.number(record.term)


def _reasons(tick: Tick) -> Iterator[tuple[str, str]]:
    """(class, words) of each reason."""
    counts = (
        (tick.reruns, "run again after the present run", ""),
        (tick.still_waiting, "still waiting", ""),
        (tick.still_running, "still running", ""),
        (tick.held, "held", "mr-warn"),
        (tick.paused, "paused", ""),
        (
            len(tick.blocked_tenants),
            "blocked by somebody\u2019s open transaction",
            "mr-warn",
        ),
        (tick.not_reached, "not reached in time, the database was slow", "mr-warn"),
    )
    yield from ((tone, f"{count:,} {word}") for count, word, tone in counts if count)
    if isinstance(tick.not_eligible, dict):
        for reason, count in sorted(tick.not_eligible.items()):
            if isinstance(count, int) and count:
                yield "", f"{count:,} not eligible: {words.shown(reason, limit=100)}"


def _slots(tick: Tick) -> Iterator[str]:
    if tick.missed:
        yield f"{words.plural(tick.missed, 'slot')} missed, this one stands for them"
    if tick.paused_slots:
        yield f"{words.plural(tick.paused_slots, 'slot')} in a pause"
    if tick.merged > 1:
        yield f"{words.plural(tick.merged, 'idle tick')} in this row"
