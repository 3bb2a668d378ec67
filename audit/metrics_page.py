"""metrics_page: waits, run times, throughput and failures, drawn, each with its table.

The range, a handler and a tenant stand in the address. What is drawn is drawn again by
metrics.js from the numbers that the tables show.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from audit import clock, drawings, keyset, page, words
from audit.metrics import RANGES, Metrics, Range, Total, read
from audit.names import names
from audit.sum_up import reached

USUAL = "24h"
SUGGESTED = 200  # tenants offered beside the field; any other can be typed
COLUMNS = 8  # handlers with failures that have a column of their own
PARTS = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
TONES = {"p50": "accent", "p95": "quiet", "p99": "dashed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line of a chart, or a column of its table."""

    name: str
    tone: str  # accent | quiet | dashed | fail | warn; "": in the table only
    values: tuple[float | None, ...]  # runs, or seconds
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart and the table behind it."""

    id: str
    title: str
    said: str  # what it shows, in a sentence
    unit: str  # runs | seconds
    series: tuple[Series, ...]
    rows: tuple[tuple[datetime, tuple[str, ...]], ...]  # newest first


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerRow:
    """What the runs of a handler came to."""

    key: str
    title: str
    total: Total
    figures: tuple[str, ...]  # waited, then ran: p50, p95, p99
    failures: SafeString | str
    address: str  # of its runs


@page.needs("audit.view_run")
def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics: whether work waits longer, runs longer or fails more than it did."""
    scope, problems, now = page.tenants(request), [], clock.now()
    name = request.GET.get("range") or USUAL
    if name not in RANGES:
        choices = ", ".join(RANGES)
        problems.append(f"“{words.shown(name, limit=40)}” is no range: {choices} are.")
    asked = RANGES.get(name, RANGES[USUAL])
    handler = words.shown(request.GET.get("handler", "").strip(), limit=64)
    slug = request.GET.get("tenant", "").strip()
    tenants = _tenants(slug, scope)
    if slug and not tenants:
        problems.append(f"You see no tenant “{words.shown(slug, limit=64)}”.")
    context: dict[str, Any] = {}
    try:
        found = read(asked, tenants=tenants, handler=handler, now=now)
    except keyset.TooSlow:
        problems.append(
            "This was ended after 3 s: there are too many runs for it. Choose a tenant, a handler or a range of 24 h or more."
        )
    else:
        context = _context(found, asked, tenant=slug)
    return page.render(
        request,
        "audit/metrics.html",
        title="Metrics",
        group="Audit",
        lead="How long work waits and runs, how much of it ends, and what fails.",
        live=True,
        problems=problems,
        asked=asked,
        handler=handler,
        tenant=slug,
        ranges=[(one, _address(one.name, handler, slug)) for one in RANGES.values()],
        titles=names().titles(),
        suggested=names().tenants(scope, limit=SUGGESTED),
        reached=reached(),
        late=now - timedelta(minutes=5),
        **context,
    )


def _tenants(slug: str, scope: frozenset[int] | None) -> frozenset[int] | None:
    """Whose runs are shown; None: those of all tenants."""
    if not slug:
        return scope
    ids = frozenset(names().tenant_ids([slug.replace("\x00", "")]).values())
    return ids if scope is None else ids & scope


def _address(name: str, handler: str, tenant: str) -> str:
    asked = {"range": name, "handler": handler, "tenant": tenant}
    return "?" + urlencode({key: text for key, text in asked.items() if text})


def _context(found: Metrics, asked: Range, *, tenant: str) -> dict[str, Any]:
    charts = _charts(found)
    return {
        "found": found,
        "figures": [
            words.duration(f(part))
            for f in (found.whole.waited, found.whole.ran)
            for part in (0.5, 0.95)
        ],
        "bad": _percent(found.whole),
        "charts": charts,
        "handlers": _handlers(found, asked, tenant=tenant),
        "drawn": {
            "zone": timezone.get_current_timezone_name(),
            "starts": [start.timestamp() for start in found.starts],
            "days": asked.span > timedelta(days=1),
            "charts": [
                {
                    "id": chart.id,
                    "unit": chart.unit,
                    "series": [
                        {"name": one.name, "tone": one.tone, "values": one.values}
                        for one in chart.series
                        if one.tone
                    ],
                }
                for chart in charts
            ],
        },
    }


def _charts(found: Metrics) -> list[Chart]:
    step = words.duration(found.step)
    failing = sorted(found.failures, key=lambda key: -sum(found.failures[key]))
    by_handler = [
        _counts(names().title(key), "", found.failures[key])
        for key in failing[:COLUMNS]
    ]
    return [
        _chart(
            found,
            id="ended",
            title="Throughput",
            said="Runs that ended a minute",
            unit="runs",
            series=[
                _pace(found),
                _counts("Ended", "", [one.runs for one in found.steps]),
            ],
        ),
        _chart(
            found,
            id="failed",
            title="Failures",
            said=f"Runs that did not succeed in each {step}",
            unit="runs",
            series=[
                _counts(
                    "Failed or abandoned", "fail", [one.failed for one in found.steps]
                ),
                _counts("Partial", "warn", [one.partial for one in found.steps]),
                *by_handler,
            ],
        ),
        _chart(
            found,
            id="waited",
            title="Waited",
            said="From enqueued to claimed, of first attempts",
            unit="seconds",
            series=_lengths(found, Total.waited),
        ),
        _chart(
            found,
            id="ran",
            title="Ran",
            said="From started to finished",
            unit="seconds",
            series=_lengths(found, Total.ran),
        ),
    ]


def _chart(found: Metrics, *, series: Sequence[Series], **more: str) -> Chart:
    cells = zip(*(one.shown for one in series), strict=True)
    rows = tuple(zip(found.starts, cells, strict=True))
    return Chart(series=tuple(series), rows=rows[::-1], **more)


def _pace(found: Metrics) -> Series:
    values = tuple(
        round(one.runs / minutes, 2)
        for one, minutes in zip(found.steps, found.minutes, strict=True)
    )
    return Series(
        name="A minute",
        tone="accent",
        values=values,
        shown=tuple(
            f"{value:,.0f}" if value >= 10 else f"{value:g}" for value in values
        ),
    )


def _counts(name: str, tone: str, values: Sequence[int]) -> Series:
    return Series(
        name=name,
        tone=tone,
        values=tuple(values),
        shown=tuple(map(words.number, values)),
    )


def _lengths(
    found: Metrics, of: Callable[[Total, float], timedelta | None]
) -> list[Series]:
    made = []
    for part, name in PARTS:
        lengths = [of(one, part) for one in found.steps]
        seconds = tuple(None if one is None else one.total_seconds() for one in lengths)
        made.append(
            Series(
                name=name,
                tone=TONES[name],
                values=seconds,
                shown=tuple(map(words.duration, lengths)),
            )
        )
    return made


def _handlers(found: Metrics, asked: Range, *, tenant: str) -> list[HandlerRow]:
    # What these figures count, and nothing that ended since.
    same = {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        **({"tenant": tenant} if tenant else {}),
    }
    return [
        HandlerRow(
            key=key,
            title=names().title(key),
            total=total,
            figures=tuple(
                words.duration(of(total, part))
                for of in (Total.waited, Total.ran)
                for part, _ in PARTS
            ),
            failures=drawings.by_step(
                found.failures[key],
                said=f"{total.failed:,} failed in {asked.title}, at most {max(found.failures[key]):,} in {words.duration(found.step)}",
            )
            if key in found.failures
            else "",
            address=f"{reverse(f'admin:{names().list_of(key)}')}?{urlencode({'handler': key, **same})}",
        )
        for key, total in sorted(
            found.by_handler.items(),
            key=lambda pair: (-pair[1].failed, -pair[1].runs, pair[0]),
        )
    ]


def _percent(total: Total) -> str:
    """Failed runs in a hundred; a dash where none ended."""
    if not total.runs:
        return words.UNKNOWN
    share = 100 * total.failed / total.runs
    return (
        f"{share:.1f}{words.SPACE}%"
        if share and share < 10
        else f"{share:.0f}{words.SPACE}%"
    )
