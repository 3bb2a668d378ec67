"""Text that would turn its neighbours round is shown by number; files stay as they are."""

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from project.visible import VisibleControls

pytestmark = pytest.mark.once


def through(response: HttpResponse) -> HttpResponse:
    return VisibleControls(lambda request: response)(RequestFactory().get("/"))


def test_controls_are_shown_and_all_else_stays():
    text = "a\u202eb\u2066c\x00d \u00e4\u4e2d\u2026\u2013 <b>"
    shown = through(HttpResponse(text)).content.decode()
    assert shown == "a[U+202E]b[U+2066]c[U+0000]d \u00e4\u4e2d\u2026\u2013 <b>"


def test_files_stay_as_they_are():
    plain = HttpResponse("a\u202eb", content_type="text/plain; charset=utf-8")
    assert through(plain).content.decode() == "a\u202eb"
    stream = StreamingHttpResponse([b"a\xe2\x80\xaeb"])
    assert b"".join(through(stream).streaming_content) == b"a\xe2\x80\xaeb"  # type: ignore[arg-type, attr-defined]
