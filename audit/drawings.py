"""drawings: small SVG pictures made by the server.

Fills by class, places by attribute, never a style: the content security policy
allows nothing else. Each has a sentence for those who cannot see it.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from audit import words

type Rectangle = tuple[str, float, float, float, float]  # class, x, y, width, height

TONES = {
    "failed": "f-fail",
    "abandoned": "f-fail",
    "partial": "f-warn",
}  # others: f-bar
SHORTEST, LONGEST = 0.01, 3600.0  # seconds; the ends of the logarithmic scale
WIDE = 150  # pixels, of slots and of the last runs
MOST_BOXES = 30  # slots drawn one by one; more become one bar


def slots(*, busy: int, usable: int, asked: int) -> SafeString:
    """Slots in use, free, and asked for but not given."""
    said = f"{busy} of {usable} busy" + (
        f", {asked} asked for" if asked > usable else ""
    )
    count = max(asked, usable, busy, 1)
    boxes = (
        _boxes(busy, usable, count)
        if count <= MOST_BOXES
        else _stretches(busy, usable, count)
    )
    return _svg(WIDE, 8, said, rectangles(boxes, rounded=1))


def _boxes(busy: int, usable: int, count: int) -> list[Rectangle]:
    step = (WIDE + 2) / count
    found: list[Rectangle] = []
    for place in range(count):
        lost = place >= max(usable, busy)
        kind = "f-accent" if place < busy else "f-warn" if lost else "f-track"
        top, height = (3.5, 1.5) if lost else (0.0, 8.0)
        found.append((kind, place * step, top, step - 2, height))
    return found


def _stretches(busy: int, usable: int, count: int) -> list[Rectangle]:
    unit = WIDE / count
    return [
        ("f-warn", 0.0, 3.5, float(WIDE), 1.5),
        ("f-track", 0.0, 0.0, max(usable, busy) * unit, 8.0),
        ("f-accent", 0.0, 0.0, busy * unit, 8.0),
    ]


def last_runs(
    runs: Sequence[tuple[str, timedelta | None]], *, most: int = 50
) -> SafeString:
    """The last runs of a handler, oldest first: height is run time, colour is trouble."""
    shown = runs[-most:]
    step = WIDE / most
    bars = []
    for place, (outcome, ran) in enumerate(shown):
        height = 4 + 20 * scale(ran)
        bars.append(
            (
                TONES.get(outcome, "f-bar"),
                (most - len(shown) + place) * step,
                24 - height,
                step - 1,
                height,
            )
        )
    bad = sum(TONES.get(outcome) == "f-fail" for outcome, _ in shown)
    some = sum(outcome == "partial" for outcome, _ in shown)
    trouble = (
        ", ".join([f"{bad} failed"] * bool(bad) + [f"{some} partial"] * bool(some))
        or "none failed"
    )
    return _svg(
        WIDE, 24, f"last {words.plural(len(shown), 'run')}, {trouble}", rectangles(bars)
    )


def scale(span: timedelta | None) -> float:
    """0 to 1: where a duration stands between 10 ms and 1 h, on a logarithm."""
    seconds = min(max(span.total_seconds() if span else 0.0, SHORTEST), LONGEST)
    return math.log(seconds / SHORTEST) / math.log(LONGEST / SHORTEST)


def by_hour(counts: Sequence[int], *, outcome: str) -> SafeString:
    """A count per hour, oldest first, highest bar = the most."""
    most = max([*counts, 1])
    bars = [
        (TONES.get(outcome, "f-bar"), place * 4.0, 18 - height, 3.0, height)
        for place, count in enumerate(counts)
        if (height := max(18 * count / most, 2.0 if count else 0.0))
    ]
    ground = format_html(
        '<rect class="f-track" y="17" width="{}" height="1"/>', len(counts) * 4
    )
    return _svg(
        len(counts) * 4, 18, f"by hour, last {len(counts)} h", ground + rectangles(bars)
    )


def by_step(counts: Sequence[int], *, said: str) -> SafeString:
    """Failures of the steps of a range, oldest first, highest bar = the most."""
    most, step = max([*counts, 1]), WIDE / max(len(counts), 1)
    bars = [
        ("f-fail", place * step, 18 - height, max(step - 0.5, 1.0), height)
        for place, count in enumerate(counts)
        if (height := max(18 * count / most, 2.0 if count else 0.0))
    ]
    ground: Rectangle = ("f-track", 0.0, 17.0, float(WIDE), 1.0)
    return _svg(WIDE, 18, said, rectangles([ground, *bars]))


def per_minute(counts: Sequence[int], *, now: datetime) -> SafeString:
    """Finished runs per minute, oldest first; the last minute is the newest whole one."""
    top = _round_up(max([*counts, 1]))
    width = max(len(counts) - 1, 1)
    points = " L".join(
        f"{place * 100 / width:.2f} {58 - 58 * count / top:.1f}"
        for place, count in enumerate(counts)
    )
    low = min(range(len(counts)), key=counts.__getitem__)
    starts = [
        timezone.localtime(now - timedelta(minutes=m))
        for m in (len(counts), len(counts) // 2)
    ]
    lowest = timezone.localtime(now - timedelta(minutes=len(counts) - low))
    said = (
        f"Finished a minute, last {len(counts)} minutes: {counts[-1]:,} now, "
        f"lowest {counts[low]:,} at {lowest:%H:%M}"
    )
    return format_html(
        '<svg class="mr-svg full" width="100%" height="92" role="img" aria-label="{}">'
        '<text x="0" y="10">{} a minute</text>'
        '<svg y="16" width="100%" height="60" viewBox="0 0 100 60" preserveAspectRatio="none">'
        '<path class="f-soft" d="M{} L100 58 L0 58z"/><path class="l-accent" d="M{}"/></svg>'
        '<line class="l-line" x1="0" x2="100%" y1="16" y2="16"/>'
        '<line class="l-rule" x1="0" x2="100%" y1="74" y2="74"/>'
        '<text x="0" y="89">{}</text><text x="50%" y="89" text-anchor="middle">{}</text>'
        '<text x="100%" y="89" text-anchor="end">now</text></svg>',
        said,
        f"{top:,}",
        points,
        points,
        f"{starts[0]:%H:%M}",
        f"{starts[1]:%H:%M}",
    )


def budget(shares: Sequence[tuple[str, int]], *, opened: int, limit: int) -> SafeString:
    """What each kind may take of a limit, what is taken, and a line at the limit."""
    wanted = sum(count for _, count in shares)
    whole = max(wanted, opened, limit * 10 / 9, 1) / 100  # one per cent

    def at(count: float) -> str:
        return f"{count / whole:.1f}%"

    taken = [sum(count for _, count in shares[:place]) for place in range(len(shares))]
    parts = format_html_join(
        "",
        '<rect class="f-bar" opacity="{}" x="{}" y="6" width="{}" height="10"><title>{} {}</title></rect>',
        (
            (
                f"{1 - 0.13 * min(place, 5):.2f}",
                at(before),
                at(count * 0.995),
                name,
                count,
            )
            for place, ((name, count), before) in enumerate(
                zip(shares, taken, strict=True)
            )
        ),
    )
    said = f"{wanted:,} of {limit:,} connections may be opened; {opened:,} are open now"
    return format_html(
        '<svg class="mr-svg full" width="100%" height="38" role="img" aria-label="{}">'
        '<rect class="f-track" x="0" y="6" width="100%" height="10"/>{}'
        '<rect class="f-accent" x="0" y="18" width="{}" height="2"/>'
        '<line class="l-fail" x1="{}" x2="{}" y1="1" y2="22"/>'
        '<text class="on" x="0" y="34">{} open</text>'
        '<text class="on" x="50%" y="34" text-anchor="middle">{} may open</text>'
        '<text x="100%" y="34" text-anchor="end">limit {}</text></svg>',
        said,
        parts,
        at(opened),
        at(limit),
        at(limit),
        f"{opened:,}",
        f"{wanted:,}",
        f"{limit:,}",
    )


def rectangles(these: Sequence[Rectangle], *, rounded: int = 0) -> SafeString:
    """Filled rectangles, one after the other."""
    corner = f' rx="{rounded}"' if rounded else ""
    # A page has a thousand of them: to escape these words of ours and numbers took a
    # tenth of its time.
    return mark_safe(  # noqa: S308
        "".join(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{corner}/>'
            for kind, x, y, width, height in these
        )
    )


def _round_up(value: int) -> int:
    """The next number of the form 1, 2, 4 or 5 with zeros: 306 becomes 400."""
    size: int = 10 ** int(math.log10(value))
    return next(size * step for step in (1, 2, 4, 5, 10) if size * step >= value)


def _svg(width: int, height: int, said: str, parts: SafeString) -> SafeString:
    return format_html(
        '<svg class="mr-svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}</svg>',
        width,
        height,
        said,
        parts,
    )
