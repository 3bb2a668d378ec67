"""Which addresses may be clicked."""

import pytest

from scheduler.handlers.notifications.channels.safe_url import safe_url

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "url", ["/admin/", "/admin/x/?a=1#b", "https://example.com/", "http://example.com"]
)
def test_a_path_and_a_web_address_stay(url: str) -> None:
    assert safe_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "//example.com/",
        "/\\example.com",
        "\\\\example.com",
        "ftp://example.com",
        "http:/x",
        "http://[",
        "x",
    ],
)
def test_anything_else_is_left_out(url: str) -> None:
    assert safe_url(url) == ""
