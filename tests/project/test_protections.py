"""`check --deploy` is clean as shipped, and fails for each protection that is taken away."""

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import WARNING, run_checks
from django.test import override_settings

from tests.processes import run_manage

pytestmark = pytest.mark.once
PRODUCTION = {
    "DJANGO_ENV": "production",
    "SECRET_KEY": "a long secret of an installation, which nobody can guess: 0123456789",
    "DATABASE_URL": "postgresql://millrace:secret@database:5432/millrace",
    "BASE_URL": "https://millrace.example.com",
    "EMAIL_URL": "smtp+tls://user:secret@mail.example.com:587",
}
CHECK = ("check", "--deploy", "--fail-level", "WARNING")


def check(**environment: str) -> Any:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return run_manage(CHECK, env={**kept, **PRODUCTION, **environment}, timeout=60)


def test_the_shipped_settings_are_clean_in_production():
    done = check()
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ({"HTTPS": "off"}, "security.W008"),
        ({"BASE_URL": ""}, "project.W003"),
        ({"EMAIL_URL": ""}, "mail.W001"),
        ({"DATABASE_URL": "sqlite:///{folder}/x.sqlite3"}, "project.W002"),
        ({"DB_POOL_SIZE": "2", "DB_MAX_OVERFLOW": "1"}, "project.W004"),
        ({"SECRET_KEY": "short"}, "security.W009"),
    ],
)
def test_what_an_installation_leaves_out_is_named_and_ends_with_1(
    taken: dict[str, str], said: str, tmp_path: Path
):
    values = {name: one.format(folder=tmp_path) for name, one in taken.items()}
    done = check(**values)
    assert done.returncode == 1
    assert said in done.stderr


# What is in force in production, and what it is when somebody takes it away.
SHIPPED: dict[str, Any] = {
    "SECRET_KEY": PRODUCTION["SECRET_KEY"],
    "ALLOWED_HOSTS": ["millrace.example.com"],
    "SECURE_HSTS_SECONDS": 31_536_000,
    "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
    "SECURE_HSTS_PRELOAD": True,
    "SECURE_SSL_REDIRECT": True,
    "SESSION_COOKIE_SECURE": True,
    "CSRF_COOKIE_SECURE": True,
    "BASE_URL_IS_SET": True,
    "SQLITE": False,
    "MAILERS": {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend"}},
}
CONSOLE = {"default": {"BACKEND": "django.core.mail.backends.console.EmailBackend"}}


def without(name: str, part: str) -> dict[str, Any]:
    kept = [one for one in getattr(settings, name) if part not in str(one)]
    return {name: kept}


def without_the_nonce() -> list[dict[str, Any]]:
    found = deepcopy(settings.TEMPLATES)
    names = found[0]["OPTIONS"]["context_processors"]
    names[:] = [one for one in names if not one.endswith(".csp")]
    return found


TAKEN: list[tuple[str, Any]] = [
    ("security.W001", lambda: without("MIDDLEWARE", "SecurityMiddleware")),
    ("security.W002", lambda: without("MIDDLEWARE", "XFrameOptions")),
    ("security.W003", lambda: without("MIDDLEWARE", "CsrfView")),
    ("security.W004", lambda: {"SECURE_HSTS_SECONDS": 0}),
    ("security.W005", lambda: {"SECURE_HSTS_INCLUDE_SUBDOMAINS": False}),
    ("security.W006", lambda: {"SECURE_CONTENT_TYPE_NOSNIFF": False}),
    ("security.W008", lambda: {"SECURE_SSL_REDIRECT": False}),
    ("security.W009", lambda: {"SECRET_KEY": "short"}),
    ("security.W012", lambda: {"SESSION_COOKIE_SECURE": False}),
    ("security.W016", lambda: {"CSRF_COOKIE_SECURE": False}),
    ("security.W018", lambda: {"DEBUG": True}),
    ("security.W019", lambda: {"X_FRAME_OPTIONS": "SAMEORIGIN"}),
    ("security.W020", lambda: {"ALLOWED_HOSTS": []}),
    ("security.W021", lambda: {"SECURE_HSTS_PRELOAD": False}),
    ("security.W022", lambda: {"SECURE_REFERRER_POLICY": None}),
    ("security.W027", lambda: {"TEMPLATES": without_the_nonce()}),
    ("mail.E001", lambda: {"MAILERS": CONSOLE}),
    ("axes.W002", lambda: without("MIDDLEWARE", "Axes")),
    ("axes.W003", lambda: without("AUTHENTICATION_BACKENDS", "axes")),
    ("project.W020", lambda: {"AUTH_PASSWORD_VALIDATORS": []}),
    ("project.W021", lambda: {"SESSION_COOKIE_AGE": 14 * 24 * 3600}),
    ("project.W022", lambda: {"SECURE_CSP": {}}),
    ("project.W022", lambda: without("MIDDLEWARE", "ContentSecurityPolicy")),
    ("project.W023", lambda: {"AXES_ENABLED": False}),
    ("project.W023", lambda: {"AXES_FAILURE_LIMIT": 1000}),
    ("project.W024", lambda: without("MIDDLEWARE", "TenantScope")),
]


def found() -> set[str]:
    tags = ["security", "mail", "compatibility"]
    messages = run_checks(tags=tags, include_deployment_checks=True)
    return {message.id or "" for message in messages if message.is_serious(WARNING)}


@pytest.mark.parametrize(
    ("id", "taken"),
    TAKEN,
    ids=[f"{number}-{id}" for number, (id, _) in enumerate(TAKEN)],
)
def test_each_protection_is_missed_when_it_is_taken_away(id: str, taken: Any):
    with override_settings(**SHIPPED):
        assert id not in found()
        with override_settings(**taken()):
            assert id in found()
