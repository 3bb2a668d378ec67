"""Saved views: a query string under a name, one reader's own."""

import pytest
from django.http import QueryDict

from audit import saved
from tests import factories

pytestmark = pytest.mark.django_db


def keep(user_id: int, name: str, query: str = "text=x") -> None:
    saved.save(user_id, page="runs", name=name, query=query, allowed=["text", "sort"])


def test_the_same_name_replaces_and_another_stands_beside_it():
    anna, bert = factories.user("anna").pk, factories.user("bert").pk
    keep(anna, "b", "text=1")
    keep(anna, "b", "text=2")
    keep(anna, "a")
    keep(bert, "b")
    assert [view.name for view in saved.of(anna, page="runs")] == ["a", "b"]
    assert saved.of(anna, page="runs")[1].query == "text=2"
    assert saved.of(anna, page="changes") == []


def test_there_is_an_end_to_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(saved, "MOST", 2)
    anna = factories.user("anna").pk
    keep(anna, "a")
    keep(anna, "b")
    with pytest.raises(saved.Refused, match="You have 2 views"):
        keep(anna, "c")
    keep(anna, "b", "sort=ran")


def test_nobody_removes_the_view_of_another():
    anna, bert = factories.user("anna").pk, factories.user("bert").pk
    keep(anna, "a")
    [view] = saved.of(anna, page="runs")
    assert not saved.remove(bert, view_id=view.pk)
    assert saved.remove(anna, view_id=view.pk)
    assert not saved.remove(anna, view_id=view.pk)


def test_a_query_is_kept_without_places_unknown_names_and_what_is_empty():
    asked = QueryDict("text=a&text=&older=x&sort=&q=1&text=b")
    assert saved.narrowed(asked, ["text", "sort"]).urlencode() == "text=a&text=b"
