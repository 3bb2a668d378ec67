"""tables: the queue's lists as django-tables2 tables in the house look."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audit import words
from audit.tables import Table, column, handler_cell
from audit.templatetags import millrace
from workqueue.models import WorkItem


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLine:
    """An item with what its row says besides."""

    item: WorkItem
    title: str  # of its handler
    why: str  # where it stands, in a sentence
    actable: bool  # the reader may do something to it


class ItemTable(Table):
    """Items: what waits, executes or is held now."""

    caption = "Items, newest first"

    mark = column("Select", td="nl end", hidden=True)
    enqueued = column("Enqueued", td="end nl mr-nowrap", newest_first=True)
    state = column("State", td="first nl")
    handler = column("Handler", td="w")
    tenant = column("Tenant", td="nl name")
    attempts = column("Starts", td="n", th="n")
    why = column("Why", td="w last", th="wide")

    class Meta(Table.Meta):
        pass

    def __init__(self, rows: list[ItemLine], **more: Any) -> None:
        """A list on which nothing can be done has no boxes."""
        hidden = () if any(row.actable for row in rows) else ("mark",)
        super().__init__(rows, exclude=hidden, **more)

    def render_mark(self, record: ItemLine) -> SafeString | str:
        """The box that selects the row."""
        if not record.actable:
            return ""
        said = f"Select {record.title} for {record.item.tenant_slug}"
        return format_html(
            '<input type="checkbox" name="item" value="{}" form="act" aria-label="{}">',
            record.item.pk,
            words.shown(said),
        )

    def render_enqueued(self, record: ItemLine) -> SafeString:
        """The time, which is the link to the item's page."""
        address = reverse("admin:item", args=[record.item.pk])
        return format_html(
            '<a href="{}">{}</a>', address, self.when(record.item.enqueued_at)
        )

    def render_state(self, record: ItemLine) -> SafeString:
        """Icon and word."""
        return millrace.status(record.item.status)

    def render_handler(self, record: ItemLine) -> SafeString:
        """Title, key, and the pair's key where it has one."""
        key = f"{record.item.handler} {record.item.dedup_key}".strip()
        return handler_cell(title=record.title, key=key)

    def render_tenant(self, record: ItemLine) -> str:
        """The slug."""
        return words.shown(record.item.tenant_slug)

    def render_attempts(self, record: ItemLine) -> str:
        """How often it started."""
        return words.number(record.item.attempts)

    def render_why(self, record: ItemLine) -> SafeString | str:
        """The sentence, and the last error under it."""
        said = words.shown(record.why, limit=400)
        if not record.item.last_error:
            return said
        error = words.shown(record.item.last_error, limit=300)
        return format_html('<div>{}<span class="sub err">{}</span></div>', said, error)
