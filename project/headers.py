"""headers: what Django does not send by itself."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# The admin uses none of them; a page that was tricked into embedding others cannot either.
POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "magnetometer",
        "microphone",
        "midi",
        "payment",
        "usb",
    )
)


class PermissionsPolicy:
    """Tell the browser which of its powers pages never use."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Called once."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the header."""
        response = self.get_response(request)
        response.headers.setdefault("Permissions-Policy", POLICY)
        return response
