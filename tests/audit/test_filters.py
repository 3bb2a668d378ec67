"""Filters over the URL: what is read, what is refused, and the chips that say it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict

from audit import clock, filters
from audit.filters import ChangeFilters, RunFilters
from audit.models import Run
from tests import factories, screens

NOW = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)


def asked(query: str) -> RunFilters:
    return RunFilters(QueryDict(query), queryset=Run.objects.all())


@pytest.mark.django_db
def test_all_filters_hold_together():
    acme, granite = factories.tenant("acme"), factories.tenant("granite")
    with clock.at(NOW):
        wanted = screens.run(
            acme,
            handler="a.b",
            outcome="failed",
            error="disk full",
            started_at=NOW - timedelta(seconds=40),
        )
        for other in (
            {"outcome": "succeeded"},
            {"error": "another"},
            {"handler": "a.c"},
            {"node": "elsewhere, 2"},
            {"started_at": NOW},
            {"finished_at": NOW - timedelta(days=2)},
        ):
            start = {"started_at": NOW - timedelta(seconds=40)}
            fixed = {
                "handler": "a.b",
                "outcome": "failed",
                "error": "disk full",
                **start,
                **other,
            }
            screens.run(acme, **fixed)
        screens.run(granite, handler="a.b", outcome="failed", error="disk full")
        found = asked(
            "tenant=acme&handler=a.b&outcome=failed&outcome=partial&text=DISK&worker=host&since=24h&ran_over=30s"
        )
        assert [run.id for run in found.qs] == [wanted.id]


@pytest.mark.django_db
def test_chips_say_what_is_set_and_lead_to_the_list_without_it():
    with clock.at(NOW):
        chips = asked(
            "tenant=acme, granite&since=24h&ran_over=50 ms&outcome=failed&older=x_1"
        ).chips
    assert [(chip.label, chip.value.replace("\u00a0", " ")) for chip in chips] == [
        ("Tenant", "acme, granite"),
        ("Outcome", "Failed"),
        ("Finished", "in the last 1 d"),
        ("Ran", "over 50 ms"),
    ]
    assert "outcome" not in chips[1].without
    assert "older" not in chips[1].without
    assert "tenant" in chips[1].without


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=soon", "since"),
        ("ran_over=long", "ran_over"),
        ("outcome=odd", "outcome"),
        ("tick=x", "tick"),
        ("since=2026-02-31", "since"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_rest_still_filters(
    query: str, field: str
):
    acme = factories.tenant("acme")
    screens.run(acme, handler="a.b")
    screens.run(acme, handler="a.c")
    found = asked(f"{query}&handler=a.b")
    assert [run.handler for run in found.qs] == ["a.b"]
    assert list(found.form.errors) == [field]
    assert [chip.name for chip in found.chips] == ["handler"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["\x00", "a\x00b", "\ud800", "%", "'", "\\", "x" * 100_000]
)
@pytest.mark.parametrize(
    "field", ["text", "tenant", "handler", "worker", "since", "tick", "ran_over"]
)
def test_no_text_in_any_filter_is_an_error(field: str, text: str):
    query = QueryDict(mutable=True)
    query[field] = text
    assert list(RunFilters(query, queryset=Run.objects.all()).qs) == []


@pytest.mark.django_db
def test_a_nul_is_found_where_its_sign_was_stored():
    acme = factories.tenant("acme")
    screens.run(acme, outcome="failed", error="broken\x00text")
    query = QueryDict(mutable=True)
    query["text"] = "broken\x00text"
    assert RunFilters(query, queryset=Run.objects.all()).qs.count() == 1


@pytest.mark.django_db
def test_a_time_is_read_in_the_zone_of_the_page(settings):
    settings.TIME_ZONE = "Europe/Berlin"
    from django.utils import timezone

    with timezone.override("Europe/Berlin"):
        moment = filters.MomentField().clean("2026-11-29 14:00")
    assert moment is not None
    assert moment.at == datetime(2026, 11, 29, 13, tzinfo=UTC)


@pytest.mark.django_db
def test_changes_are_found_by_who_what_and_why():
    from audit import ledger

    for who, subject, why in (
        ("anna", "setting:X", "move"),
        ("bert", "pause:tenant:acme", "move"),
        ("anna", "item:1", ""),
    ):
        ledger.change(who=who, origin="admin", subject=subject, verb="changed", why=why)

    def found(query: str) -> set[str]:
        return {row.subject for row in ChangeFilters(QueryDict(query)).qs}

    assert found("who=ANNA") == {"setting:X", "item:1"}
    assert found("subject=setting:") == {"setting:X"}
    assert found("text=move&who=bert") == {"pause:tenant:acme"}


@pytest.mark.django_db
def test_a_tenant_is_found_by_its_id_and_a_removed_one_by_the_slug_that_was_kept():
    acme, gone = factories.tenant("acme"), factories.tenant("gone")
    for tenant in (acme, gone, factories.tenant("other")):
        screens.run(tenant)
    gone.delete()
    assert "tenant_id" in str(asked("tenant=acme").qs.query).partition("WHERE")[2]
    assert {run.tenant for run in asked("tenant=acme,gone").qs} == {"acme", "gone"}
    assert {run.tenant for run in asked("tenant=gone").qs} == {"gone"}
