"""Template tags for times, durations, numbers, icons and states: `{% load millrace %}`.

`{% when t %}` relative, `{% clock t %}` day and time to the second, `{% status "failed" %}`
icon and word, `{% icon "check" %}`, and the filters duration, number, shown, plural.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from audit import clock as database_clock
from audit import drawings, lines, words
from audit.window import Window

register = template.Library()


@register.simple_tag(takes_context=True)
def when(context: Mapping[str, Any], moment: datetime | None) -> str:
    """'7 s ago', 'yesterday 22:04', or the moment where the reader wants those; the exact time under the pointer."""
    return (
        words.UNKNOWN
        if moment is None
        else _time(moment, words.told(moment, _now(context)))
    )


@register.simple_tag(takes_context=True)
def since(context: Mapping[str, Any], moment: datetime | None) -> str:
    """'7 min 28 s': how long it has been."""
    if moment is None:
        return words.UNKNOWN
    passed = (_now(context) - moment).total_seconds()
    return _time(moment, words.duration(timedelta(seconds=max(round(passed), 0))))


@register.simple_tag(takes_context=True)
def clock(context: Mapping[str, Any], moment: datetime | None) -> str:
    """'today 09:14:09', 'yesterday 20:05:31', '26 Nov 09:30:00'."""
    if moment is None:
        return words.UNKNOWN
    return _time(moment, words.day_and_time(moment, _now(context), seconds=True))


@register.simple_tag(takes_context=True)
def until(context: Mapping[str, Any], moment: datetime | None) -> str:
    """'23 s': how long it will be; nothing less than none."""
    if moment is None:
        return words.UNKNOWN
    left = (moment - _now(context)).total_seconds()
    return _time(moment, words.duration(timedelta(seconds=max(round(left), 0))))


@register.simple_tag(takes_context=True)
def to_the_second(context: Mapping[str, Any], moment: datetime | None) -> str:
    """'14:32:10' today, else 'yesterday 22:04:11'."""
    if moment is None:
        return words.UNKNOWN
    return _time(
        moment,
        words.day_and_time(moment, _now(context), seconds=True).removeprefix("today "),
    )


@register.simple_tag(takes_context=True)
def short(context: Mapping[str, Any], moment: datetime | None) -> str:
    """'13:05' today, else 'yesterday 22:04', '26 Nov 09:30'."""
    if moment is None:
        return words.UNKNOWN
    return _time(
        moment, words.day_and_time(moment, _now(context)).removeprefix("today ")
    )


@register.simple_tag
def exact(moment: datetime | None) -> str:
    """The whole time, in UTC, for a record's own page."""
    return words.UNKNOWN if moment is None else _time(moment, words.exact(moment))


@register.simple_tag
def precise(moment: datetime | None, day: bool = False) -> str:
    """'14:31:58.204', or with its day: for lines of a transcript and steps of a run."""
    return (
        words.UNKNOWN
        if moment is None
        else _time(moment, words.precise(moment, day=day))
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """A symbol of the sprite; the word stands beside it."""
    href = f"{static('millrace/icons.svg')}#{name}"
    return format_html(
        '<svg class="mr-i" aria-hidden="true"><use href="{}"/></svg>', href
    )


@register.simple_tag
def status(state: str, word: str = "") -> SafeString:
    """A state: icon and word. `word` in place of the usual one ("Yes, term 41")."""
    found = words.STATES.get(state) or words.State(
        "info", "is-off", words.shown(state, limit=40)
    )
    kind = f"mr-st {found.tone}".strip()
    return format_html(
        '<span class="{}">{}{}</span>', kind, icon(found.icon), word or found.word
    )


@register.simple_tag
def slots(*, busy: int, usable: int, asked: int) -> SafeString:
    """The slots of a process, drawn."""
    return drawings.slots(busy=busy, usable=usable, asked=asked)


@register.filter
def duration(span: timedelta | None) -> str:
    """1.94 s, 4 min 38 s."""
    return words.duration(span)


@register.filter
def machine(moment: datetime) -> str:
    """2026-11-29T14:31:58Z, for attributes."""
    return words.iso(moment)


@register.filter
def exactly(moment: datetime) -> str:
    """2026-11-29 14:31:58 UTC, as plain text."""
    return words.exact(moment)


@register.filter
def number(value: int | None) -> str:
    """1,204, or a dash."""
    return words.number(value)


@register.filter
def labelled(cells: Iterable[str], headers: Iterable[Mapping[str, Any]]) -> list[str]:
    """The cells of a row of the admin's own list, each with the name of its column, which a phone shows beside it."""
    return [
        format_html(
            '{} data-label="{}"{}',
            mark_safe(cell[:3]),  # noqa: S308 - "<td" or "<th", made by the admin
            capfirst(strip_tags(header["text"])),
            mark_safe(cell[3:]),  # noqa: S308 - likewise
        )
        for cell, header in zip(cells, headers, strict=False)
    ]


@register.filter
def plural(count: int, one: str) -> str:
    """{{ n|plural:"item" }}, {{ n|plural:"process,processes" }}."""
    singular, _, many = one.partition(",")
    return words.plural(count, singular, many)


@register.filter
def of(found: Mapping[str, Any], name: str) -> Any:
    """The value of a name that a variable holds; nothing where there is none."""
    return found.get(name)


@register.filter
def coded(text: str) -> SafeString:
    """Our own sentences: what stands between backticks is code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<code>{}</code>", part) if place % 2 else part,)
            for place, part in parts
        ),
    )


@register.filter
def shown(text: object, limit: int = 200) -> str:
    """Text of unknown origin: controls made visible, length bounded, then escaped as usual."""
    return words.shown(str(text), limit=limit)


@register.simple_tag
def transcript(window: Window, selected: int | None = None) -> SafeString:
    """The lines of a stretch."""
    return lines.html(window, selected=selected)


def _time(moment: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        words.iso(moment),
        words.exact(moment),
        text,
    )


def _now(context: Mapping[str, Any]) -> datetime:
    """One instant for a whole page, so that two ages on it agree."""
    found = context.get("now")
    return found if isinstance(found, datetime) else database_clock.now()
