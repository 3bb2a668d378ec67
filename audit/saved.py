"""saved: lists as somebody asked for them, under names of their own.

A view is the query string of a list: nothing of the rows is kept, so it shows what
matches when it is opened, and to its owner alone.
"""

from collections.abc import Iterable

from django.http import QueryDict

from audit import text
from audit.models import SavedView

MOST = 20  # views of one reader and list
LONGEST_NAME = 60  # characters
LONGEST_QUERY = 2000  # characters


class Refused(Exception):
    """The view was not saved; the text says why."""


def of(user_id: int, *, page: str) -> list[SavedView]:
    """The views of a reader, in the order of their names."""
    return list(SavedView.objects.filter(user_id=user_id, page=page).order_by("name"))


def save(
    user_id: int, *, page: str, name: str, query: str, allowed: Iterable[str]
) -> SavedView:
    """Keep a view; one of the same name is replaced. Raises Refused."""
    name = text.visible(" ".join(name.split()))
    if not 0 < len(name) <= LONGEST_NAME:
        raise Refused(f"The name of a view has 1 to {LONGEST_NAME} characters.")
    kept = narrowed(QueryDict(query[: LONGEST_QUERY * 3]), allowed).urlencode()
    if not kept:
        raise Refused("Nothing is filtered or sorted, so there is nothing to save.")
    if len(kept) > LONGEST_QUERY:
        raise Refused("These filters are too long to be saved.")
    others = SavedView.objects.filter(user_id=user_id, page=page).exclude(name=name)
    if others.count() >= MOST:
        raise Refused(f"You have {MOST} views of this list. Remove one first.")
    view, _ = SavedView.objects.update_or_create(
        user_id=user_id, page=page, name=name, defaults={"query": kept}
    )
    return view


def remove(user_id: int, *, view_id: int) -> bool:
    """Forget a view. False: it is not one of this reader's."""
    gone, _ = SavedView.objects.filter(pk=view_id, user_id=user_id).delete()
    return gone > 0


def narrowed(asked: QueryDict, allowed: Iterable[str]) -> QueryDict:
    """What of a query string a list knows, without what is empty."""
    known, kept = frozenset(allowed), QueryDict(mutable=True)
    for name, values in asked.lists():
        if name in known and any(values):
            kept.setlist(name, [text.visible(value) for value in values if value])
    return kept
