"""The bases of every app's admin: rows nobody edits, and edits that are recorded."""

from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group

from audit.admin import ReadOnlyAdmin, RecordedAdmin, plain
from audit.models import Change, Run
from tests import factories


@pytest.mark.django_db
def test_a_read_only_row_is_changed_by_nobody(rf):
    request = rf.get("/")
    request.user = factories.superuser()
    one = ReadOnlyAdmin(Run, admin.site)
    assert not one.has_add_permission(request)
    assert not one.has_change_permission(request)
    assert not one.has_delete_permission(request)
    assert one.has_view_permission(request)


@pytest.mark.django_db
def test_what_a_form_changed_is_written_down_but_never_a_password(rf):
    request = rf.post("/")
    request.user = factories.superuser("boss")
    form = SimpleNamespace(
        changed_data=["name", "password"],
        initial={"name": "old", "password": "secret one"},
        cleaned_data={"name": "new", "password": "secret two"},
    )
    group = Group.objects.create(name="old")
    group.name = "new"
    RecordedAdmin(Group, admin.site).save_model(request, group, form, change=True)
    change = Change.objects.get()
    assert (change.who, change.subject, change.verb) == ("boss", "group:new", "changed")
    assert (change.old, change.new) == ({"name": "old"}, {"name": "new"})
    RecordedAdmin(Group, admin.site).delete_queryset(
        request, Group.objects.filter(name="new")
    )
    assert [row.verb for row in Change.objects.order_by("id")] == ["changed", "deleted"]
    assert not Group.objects.filter(name="new").exists()


def test_a_value_of_a_form_becomes_plain():
    moment = datetime(2026, 11, 29, tzinfo=UTC)
    assert plain({"a": [moment, date(2026, 1, 2), 1, None, True, object]}) == {
        "a": ["2026-11-29T00:00:00+00:00", "2026-01-02", 1, None, True, str(object)]
    }
