"""visible: characters that turn text round, or end it, shown by their number on every page.

Pages of our own do that to each text (`words.shown`); names on the admin's stock lists,
titles and messages would slip through. What is escaped is the templates' work.
"""

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# In UTF-8: U+0000; U+202A to U+202E, embedding and override; U+2066 to U+2069, isolates.
CONTROLS = re.compile(rb"\x00|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


class VisibleControls:
    """Put [U+202E] in place of such a character."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Take the next in line."""
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pages only: files are downloaded as they are."""
        response = self._get_response(request)
        if not response.streaming and response.get("Content-Type", "").startswith(
            "text/html"
        ):
            response.content = CONTROLS.sub(_number, response.content)
        return response


def _number(found: re.Match[bytes]) -> bytes:
    return f"[U+{ord(found.group().decode()):04X}]".encode()
