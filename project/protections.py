"""protections: what `manage.py check --deploy` says when a protection of ours was taken away.

Django's own checks name most of them. These name what Django lets pass: a site without
password rules, without a limit to guessing, or whose requests nobody limits to a tenant.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

LONGEST_SESSION = timedelta(hours=12)
MOST_GUESSES = 20
CSP = "django.middleware.csp.ContentSecurityPolicyMiddleware"
SCOPE = "workqueue.middleware.TenantScope"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


@register(Tags.security, deploy=True)
def check_passwords(**_: Any) -> list[CheckMessage]:
    """project.W020: any password would do."""
    if settings.AUTH_PASSWORD_VALIDATORS:
        return []
    return [
        Warning(
            "AUTH_PASSWORD_VALIDATORS is empty: any password is accepted.",
            hint="Put back the four validators of project/settings.py.",
            id="project.W020",
        )
    ]


@register(Tags.security, deploy=True)
def check_session(**_: Any) -> list[CheckMessage]:
    """project.W021: a browser left open stays signed in."""
    age = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    if age <= LONGEST_SESSION:
        return []
    return [
        Warning(
            f"SESSION_COOKIE_AGE is {age}: a browser that is left behind stays signed in that long.",
            hint="Set it to 12 * 3600 or less.",
            id="project.W021",
        )
    ]


@register(Tags.security, deploy=True)
def check_csp(**_: Any) -> list[CheckMessage]:
    """project.W022: markup that got into a page could run."""
    scripts = settings.SECURE_CSP.get("script-src", ())
    unsafe = not scripts or any("unsafe" in str(source) for source in scripts)
    if CSP in settings.MIDDLEWARE and not unsafe:
        return []
    return [
        Warning(
            "No content security policy keeps foreign scripts from running.",
            hint=f"Keep {CSP} in MIDDLEWARE, and SECURE_CSP without 'unsafe-…'.",
            id="project.W022",
        )
    ]


@register(Tags.security, deploy=True)
def check_guessing(**_: Any) -> list[CheckMessage]:
    """project.W023: passwords could be tried without end."""
    limit = settings.AXES_FAILURE_LIMIT
    if settings.AXES_ENABLED and isinstance(limit, int) and limit <= MOST_GUESSES:
        return []
    return [
        Warning(
            "Wrong passwords are not limited: they can be guessed.",
            hint=f"Set AXES_ENABLED = True and AXES_FAILURE_LIMIT to at most {MOST_GUESSES}.",
            id="project.W023",
        )
    ]


@register(Tags.security, deploy=True)
def check_scope(**_: Any) -> list[CheckMessage]:
    """project.W024: no request would know its tenants, so that nobody sees anything."""
    known = [one for one in settings.MIDDLEWARE if one in (AUTHENTICATION, SCOPE)]
    if known == [AUTHENTICATION, SCOPE]:
        return []
    return [
        Warning(
            f"{SCOPE} does not stand after {AUTHENTICATION}: requests are limited to no tenant.",
            hint="Put it back into MIDDLEWARE, after the one that says who asks.",
            id="project.W024",
        )
    ]
