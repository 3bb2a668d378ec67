"""login: the sign-in form with refusals in the house's words, and how guessing is slowed.

django-axes counts failures in the database, so that all web processes know them. They
are counted per user name and address: an attacker locks out himself, not the account.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

LONGEST_NAME = 150  # characters
NETWORK = 64  # bits of an IPv6 address that a customer does not choose freely


class LoginForm(AdminAuthenticationForm):
    """User name and password, for accounts that may use the admin."""

    error_messages = {
        "invalid_login": "That user name and password do not match an account that may sign in here.",
        "inactive": "This account is switched off. An administrator can switch it on under Users.",
        "locked": "Too many wrong passwords for this user name from your address. Try again in {minutes} minutes, or ask an administrator to lift the lock under Sign-in locks.",
    }

    def clean(self) -> dict[str, Any]:
        """No user has a longer name, and the table of failures cannot hold one."""
        if len(self.cleaned_data.get("username") or "") > LONGEST_NAME:
            raise super().get_invalid_login_error()
        return super().clean()

    def get_invalid_login_error(self) -> ValidationError:
        """Why it was refused: somebody who is locked out would go on guessing otherwise."""
        if not getattr(self.request, "axes_locked_out", False):
            return super().get_invalid_login_error()
        minutes = round(settings.AXES_COOLOFF_TIME.total_seconds() / 60)
        text = self.error_messages["locked"].format(minutes=minutes)
        return ValidationError(text, code="locked")


def locked(
    request: HttpRequest, response: HttpResponse, credentials: dict[str, Any] | None
) -> HttpResponse:
    """The form as it stands, with the status that says to come back later."""
    response.status_code = settings.AXES_HTTP_RESPONSE_CODE
    response["Retry-After"] = round(settings.AXES_COOLOFF_TIME.total_seconds())
    return response


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from: as many proxies away as we are told to trust.

    What stands further left in X-Forwarded-For was written by the client himself. None:
    nobody can say (a Unix socket, a proxy that sends nonsense).
    """
    found = str(request.META.get("REMOTE_ADDR", ""))
    if settings.TRUSTED_PROXIES:
        named = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).split(",")
        if named[0] and len(named) >= settings.TRUSTED_PROXIES:
            found = named[-settings.TRUSTED_PROXIES].strip()
    try:
        address = ip_address(found)
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    network = ip_network((address.packed, NETWORK), strict=False)
    return str(network.network_address)
