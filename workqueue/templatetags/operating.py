"""Template tag for pages that offer an operator's verbs: `{% offers "workqueue.retry_item" as may %}`."""

from collections.abc import Mapping
from typing import Any

from django import template

from workqueue import access

register = template.Library()


@register.simple_tag(takes_context=True)
def offers(context: Mapping[str, Any], permission: str) -> bool:
    """Whether the reader may do it to rows of any tenant."""
    return access.may_somewhere(context["request"], permission)
