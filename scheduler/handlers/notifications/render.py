"""render: a notification -> the message that its channel sends."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.template import TemplateDoesNotExist, TemplateSyntaxError
from django.template.loader import render_to_string

from scheduler.handlers.notifications.channels.border import Endpoint, Message, Refused
from scheduler.handlers.notifications.models import Notification

# Below templates/notifications/, without extension: "email/channel_disabled".
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")


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
        return render_to_string(name, dict(context))
    except TemplateDoesNotExist as problem:
        raise Refused(f"template {problem.args[0]} does not exist") from problem
    except Exception as problem:
        where = _place(problem, name)
        kind = (
            ""
            if isinstance(problem, TemplateSyntaxError)
            else f"{type(problem).__name__}: "
        )
        raise Refused(f"template {where}: {kind}{problem}") from problem


def _from_template(name: str, context: Mapping[str, Any]) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise Refused(f"template {name!r} is not a name of a template")
    text = template(f"notifications/{name}.txt", context)
    try:
        return text, template(f"notifications/{name}.html", context)
    except Refused as problem:
        if isinstance(problem.__cause__, TemplateDoesNotExist):
            return text, ""
        raise


def _place(problem: Exception, name: str) -> str:
    """Name and line, as far as Django says: on the token of a syntax error, or on the culprit."""
    culprit = getattr(problem, "_culprit_node", None)
    token = getattr(problem, "token", None) or getattr(culprit, "token", None)
    origin = getattr(culprit, "origin", None)
    found = getattr(origin, "template_name", None) or name
    line = getattr(token, "lineno", None)
    return f"{found}, line {line}" if line else str(found)
