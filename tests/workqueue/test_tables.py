"""The list of items: what its cells say, and that nothing in them is markup."""

import pytest

from audit import clock
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue.tables import ItemLine, ItemTable

pytestmark = pytest.mark.django_db


def html(rf, **values) -> str:
    item = screens.held(factories.tenant(), **values)
    line = ItemLine(
        item=item, title="Act", why=values.get("last_error", "waits"), actable=True
    )
    return ItemTable([line], now=clock.now()).as_html(rf.get("/"))


def test_a_row_has_a_box_a_link_and_its_sentence(rf):
    shown = html(rf)
    assert 'type="checkbox" name="item"' in shown
    assert "/admin/items/" in shown
    assert "waits" in shown
    assert "style=" not in shown


def test_hostile_text_stays_text(rf):
    shown = html(
        rf,
        handler=HOSTILE[:64],
        tenant_slug=HOSTILE[:64],
        dedup_key=HOSTILE,
        last_error=HOSTILE,
        held_reason=HOSTILE,
    )
    assert not [live for live in LIVE if live in shown]
    assert "&lt;script&gt;" in shown


def test_where_nothing_can_be_done_there_are_no_boxes(rf):
    line = ItemLine(
        item=screens.pending(factories.tenant()), title="Act", why="", actable=False
    )
    assert "checkbox" not in ItemTable([line], now=clock.now()).as_html(rf.get("/"))
