"""errors: the pages for what went wrong: what it means, what to do, and what to quote.

They ask the database nothing: it may be what went wrong.
"""

import logging
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse

from audit import clock, words

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A page for a status."""

    status: int
    title: str
    text: str


BAD_REQUEST = Trouble(
    400,
    "This request cannot be read",
    "Something in its address or its form is malformed. Go back and send it again; if you followed a link, its source is wrong.",
)
FORBIDDEN = Trouble(
    403,
    "Not open to this account",
    "Your account lacks the right for this page or this act. An administrator of your tenant can give it to you.",
)
OLD_FORM = Trouble(
    403,
    "The form is too old",
    "It was opened before you signed in, or cookies are off. Go back, reload the page and send it again. Nothing was changed.",
)
NOT_FOUND = Trouble(
    404,
    "There is nothing here",
    "The address is wrong, what it named is gone, or it belongs to a tenant that you do not see.",
)
FAILED = Trouble(
    500,
    "The server failed",
    "What was being done is not done. The log has the reason under the request id below; try again, and quote the id if it fails again.",
)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    return _page(request, BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return _page(request, FORBIDDEN)


def old_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 of a form whose token does not fit."""
    logger.warning("form refused request_id=%s reason=%s", _id(request), reason)
    return _page(request, OLD_FORM)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    return _page(request, NOT_FOUND)


def failed(request: HttpRequest) -> HttpResponse:
    """500. Django logs the traceback right after this line."""
    path = words.shown(request.path, limit=300)
    logger.error("request failed request_id=%s path=%s", _id(request), path)
    return _page(request, FAILED)


def _page(request: HttpRequest, trouble: Trouble) -> HttpResponse:
    now = clock.now()
    context = {
        "trouble": trouble,
        "request_id": _id(request),
        "home": _home(),
        "at": words.iso(now),
        "said": words.exact(now),
    }
    return HttpResponse(render_to_string("error.html", context), status=trouble.status)


def _id(request: HttpRequest) -> str:
    return getattr(request, "request_id", words.UNKNOWN)


def _home() -> str:
    """The overview; "" in a mode that has no admin."""
    try:
        return reverse("admin:index")
    except NoReverseMatch:
        return ""
