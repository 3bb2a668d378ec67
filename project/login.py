"""login: the sign-in form, with refusals in the house's words."""

from django.contrib.admin.forms import AdminAuthenticationForm


class LoginForm(AdminAuthenticationForm):
    """User name and password, for accounts that may use the admin."""

    error_messages = {
        "invalid_login": "That user name and password do not match an account that may sign in here.",
        "inactive": "This account is switched off. An administrator can switch it on under Users.",
    }
