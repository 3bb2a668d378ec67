"""render: a notification -> the message that its channel sends."""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.template import TemplateDoesNotExist, TemplateSyntaxError
from django.template.backends.django import DjangoTemplates

from scheduler.handlers.notifications.channels.border import Endpoint, Message, Refused
from scheduler.handlers.notifications.models import Notification

# Below templates/notifications/, without extension: "email/message".
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")
# Where a template lies on the server is nobody's business.
_FOLDER = re.compile(r"^Template: .*?, ")


def message(row: Notification, *, endpoint: Endpoint) -> Message:
    """Raises Refused, with template and line, where it cannot be rendered."""
    payload = row.payload
    if not isinstance(payload, dict):
        raise Refused("payload must be an object")
    text, html = row.body_text, row.body_html
    if name := payload.get("template"):
        context = payload.get("context") or {}
        if not isinstance(context, dict):
            raise Refused("payload.context must be an object")
        context = {**context, "tenant": endpoint.tenant, "channel": endpoint.name}
        text, html = _from_template(str(name), context)
    return Message(
        notification_id=row.pk,
        key=key(row),
        recipient=row.recipient,
        subject=row.subject,
        text=text,
        html=html,
        url=str(payload.get("url") or ""),
        reply_to=str(payload.get("reply_to") or ""),
    )


def key(row: Notification) -> str:
    """What names the message on each try: it does not change, and says nothing of its content."""
    digest = hashlib.sha256(
        f"{row.tenant_id}:{row.dedupe_key}".encode("utf-8", "replace")
    )
    return f"n-{row.pk}-{digest.hexdigest()[:16]}"


def template(name: str, context: Mapping[str, Any]) -> str:
    """Render a template; what is wrong with it is said with its name and line. Raises Refused."""
    try:
        return _engine().get_template(name).render(dict(context))
    except TemplateDoesNotExist as problem:
        # Django remembers every name that it did not find, and these come from outside.
        for loader in _engine().engine.template_loaders:
            loader.reset()
        raise Refused(f"template {problem.args[0]} does not exist") from problem
    except Exception as problem:
        raise Refused(
            f"template {_place(problem, name)}: {_said(problem)}"
        ) from problem


def _from_template(name: str, context: Mapping[str, Any]) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise Refused(f"template {name!r} is not a name of a template")
    text = template(f"notifications/{name}.txt", context)
    markup = f"notifications/{name}.html"
    try:
        _engine().get_template(markup)
    except TemplateDoesNotExist as problem:
        if problem.args[:1] == (markup,):
            return text, ""
    except TemplateSyntaxError:
        pass  # said with its place below
    return text, template(markup, context)


def _engine() -> DjangoTemplates:
    site: dict[str, Any] = settings.TEMPLATES[0]
    return _engine_of(tuple(str(folder) for folder in site["DIRS"]))


@cache
def _engine_of(folders: tuple[str, ...]) -> DjangoTemplates:
    """The site's templates with `debug`: only then Django keeps the line that failed."""
    site: dict[str, Any] = settings.TEMPLATES[0]
    options = {**site["OPTIONS"], "debug": True}
    own = {"NAME": "notifications", "DIRS": list(folders), "APP_DIRS": site["APP_DIRS"]}
    return DjangoTemplates({**own, "OPTIONS": options})


def _said(problem: Exception) -> str:
    if isinstance(problem, TemplateSyntaxError):
        return _FOLDER.sub("", str(problem))
    return f"{type(problem).__name__}: {problem}"


def _place(problem: Exception, name: str) -> str:
    """Name and line, as far as Django says: on the token of a syntax error, or on the culprit."""
    culprit = getattr(problem, "_culprit_node", None)
    token = getattr(problem, "token", None) or getattr(culprit, "token", None)
    origin = getattr(culprit, "origin", None)
    found = getattr(origin, "template_name", None) or name
    line = getattr(token, "lineno", None)
    return f"{found}, line {line}" if line else str(found)
