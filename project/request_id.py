"""request_id: a name for each request, in its answer and in the log, so that a reader can quote it.

A proxy's own X-Request-ID is kept where it is a plain word; else one is made.
"""

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from audit import clock

HEADER = "X-Request-ID"
_PLAIN = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class RequestId:
    """Sets request.request_id and tells it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Called once."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Name it."""
        given = request.headers.get(HEADER, "")
        name = given if _PLAIN.fullmatch(given) else clock.uuid7().hex
        request.request_id = name  # type: ignore[attr-defined]
        response = self.get_response(request)
        response.headers[HEADER] = name
        return response
