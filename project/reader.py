"""reader: how one reader wants to see times, kept in two cookies of the browser.

The zone is the site's unless the reader chose one; times are told as ages
("7 s ago"), in that zone, or in UTC. Cookies, and no table: the sign-in page has
them too, and nothing of a person is kept on the server.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from audit import words

ZONE = "millrace_zone"  # a name of the zone database; none: the site's
TIMES = "millrace_times"  # one of WAYS; none: ages
AGO, EXACT, UTC = "ago", "exact", "utc"
WAYS = (AGO, EXACT, UTC)
KEPT = timedelta(days=365)


class Times:
    """Show times as the reader of this request wants them."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Called once."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pages are rendered inside the inner call, so this covers every one of them."""
        told = way(request)
        name = UTC.upper() if told == UTC else zone(request)
        with timezone.override(ZoneInfo(name)), words.ages(shown=told == AGO):
            return self.get_response(request)


def zone(request: HttpRequest) -> str:
    """The reader's zone; the site's where none was chosen, or one that is unknown here."""
    asked = request.COOKIES.get(ZONE, "")
    return asked if known(asked) else settings.TIME_ZONE


def way(request: HttpRequest) -> str:
    """How the reader wants to be told times: one of WAYS."""
    asked = request.COOKIES.get(TIMES, AGO)
    return asked if asked in WAYS else AGO


def offered(request: HttpRequest) -> list[tuple[str, str]]:
    """What can be chosen at the top of a page, as (way, words)."""
    own = zone(request)
    found = [(AGO, f"{own}, relative"), (EXACT, f"{own}, exact")]
    return found if own == "UTC" else [*found, (UTC, "UTC, exact")]


def known(name: str) -> bool:
    """Whether this installation knows the zone."""
    if name not in zones():
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return False
    return True


@cache
def zones() -> tuple[str, ...]:
    """All zones by name, without the aliases of files that are no places."""
    return tuple(sorted(available_timezones() - {"localtime", "Factory"}))


def keep(response: HttpResponse, *, zone: str, way: str) -> None:
    """Remember the choice in this browser for a year; the defaults are forgotten."""
    for name, value, default in (
        (ZONE, zone, settings.TIME_ZONE),
        (TIMES, way, AGO),
    ):
        if value == default:
            response.delete_cookie(name, samesite="Lax")
        else:
            response.set_cookie(
                name, value, max_age=KEPT, samesite="Lax", secure=settings.HTTPS
            )
