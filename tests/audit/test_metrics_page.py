"""The Metrics page: the range in the address, a table behind each chart, nothing of other tenants."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse

from audit import clock, keyset, metrics_page, sum_up
from audit.models import RunSum, SummedUp
from tests import factories
from tests.audit.test_sum_up import MS, always, ended
from tests.screens import HOSTILE, LIVE, signed_in, staff
from workqueue import live, registry

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenants():
    """Two tenants with runs of the last hour."""
    made = factories.tenant("acme"), factories.tenant("granite")
    now = clock.now()
    for minute in range(2, 50):
        for one, handler in zip(
            made, ("notifications.deliver", "tests.secret"), strict=True
        ):
            ended(
                now - timedelta(minutes=minute),
                tenant_id=one.pk,
                tenant=one.slug,
                handler=handler,
                ran=640 * MS,
                outcome="failed" if minute == 20 else "succeeded",
            )
    sum_up.sum_up(now, goes_on=always)
    return made


def said(client, **asked):
    answer = client.get(reverse("admin:metrics"), asked)
    return answer.content.decode()


@pytest.mark.parametrize("name", ["1h", "6h", "24h", "7d", "30d"])
def test_each_range_has_four_charts_each_with_its_table(tenants, name):
    text = said(signed_in(factories.superuser()), range=name)
    for chart in ("Throughput", "Failures", "Waited", "Ran"):
        assert f'aria-label="{chart}, numbers"' in text
    assert text.count('class="mr-chart"') == 4
    assert "96</dd>" in text  # ended
    assert 'aria-current="true"' in text


def test_a_tenants_staff_see_their_tenants_figures_only(tenants):
    acme, _ = tenants
    reader = signed_in(staff(acme, "audit.view_run"))
    for name in ("1h", "24h", "30d"):
        text = said(reader, range=name)
        assert "48</dd>" in text
        assert "tests.secret" not in text
        assert "granite" not in text


def test_a_tenant_that_is_not_ones_own_is_as_if_it_did_not_exist(tenants):
    acme, _ = tenants
    reader = signed_in(staff(acme, "audit.view_run"))
    foreign, none = said(reader, tenant="granite"), said(reader, tenant="nobody")
    assert "You see no tenant “granite”." in foreign
    assert "You see no tenant “nobody”." in none
    assert "tests.secret" not in foreign


def test_one_tenant_and_one_handler_can_be_chosen(tenants):
    reader = signed_in(factories.superuser())
    assert "48</dd>" in said(reader, tenant="granite")
    assert "48</dd>" in said(reader, handler="tests.secret")
    assert "is summed up" in said(reader, handler="tests.secret", tenant="acme")


@pytest.mark.parametrize(
    "asked",
    [
        {"range": "5h"},
        {"range": HOSTILE, "handler": HOSTILE, "tenant": HOSTILE},
        {"tenant": "a\x00b", "handler": "\x00", "range": "\x00"},
        {"handler": "x" * 100_000},
    ],
)
def test_what_cannot_be_read_is_told_in_a_line_and_shows_the_usual_range(
    tenants, asked
):
    answer = signed_in(factories.superuser()).get(reverse("admin:metrics"), asked)
    text = answer.content.decode()
    assert answer.status_code == 200
    if "range" in asked:
        assert "is no range: 1h, 6h, 24h, 7d, 30d are." in text
    assert not any(live in text for live in LIVE[:-1])


def test_a_reader_without_the_right_is_refused(tenants):
    acme, _ = tenants
    assert signed_in(staff(acme)).get(reverse("admin:metrics")).status_code == 403


@pytest.mark.parametrize("asked", [{}, {"tenant": "acme"}, {"range": "1h"}])
def test_each_number_leads_to_the_rows_that_it_counts(tenants, asked):
    now, job_type = clock.now(), registry.job_types()[0]
    for one in tenants:
        ended(now, handler="tests.secret", tenant_id=one.pk, tenant=one.slug)  # too new
        for minute in (5, 6):
            ended(
                now - timedelta(minutes=minute),
                kind="job",
                handler=job_type,
                tenant_id=one.pk,
                tenant=one.slug,
                outcome="failed",
            )
    SummedUp.objects.all().delete()
    RunSum.objects.all().delete()
    sum_up.sum_up(now, goes_on=always)
    reader = signed_in(factories.superuser())
    page = reader.get(reverse("admin:metrics"), asked)
    rows = page.context["handlers"]
    assert rows[0].key == job_type
    wanted = [n for r in rows for n in (r.total.runs, r.total.failed) if n]
    found = re.findall(
        r'<a href="(/admin/audit/(?:runs|job_logs)/[^"]*)">[^<]*</a>',
        page.content.decode().partition('id="h-by"')[2],
    )
    led = [reader.get(unescape(address)).context["matches"] for address in found]
    assert [int(matches.split()[0]) for matches in led] == wanted


def test_a_page_that_would_take_too_long_says_what_to_choose(tenants, monkeypatch):
    def slow(*_, **__):
        raise keyset.TooSlow

    monkeypatch.setattr(metrics_page, "read", slow)
    assert "Choose a tenant, a handler or a range" in said(
        signed_in(factories.superuser())
    )


def test_sums_that_stand_still_are_told(tenants):
    now = clock.now()
    with clock.at(now + timedelta(minutes=20)):
        assert "Summed up to" in said(signed_in(factories.superuser()))


def test_before_anything_was_summed_up_it_says_who_does_it():
    assert "Nothing is summed up yet" in said(signed_in(factories.superuser()))


@pytest.mark.parametrize("minute", [0, 44])  # the second needs sums of all lengths
def test_it_takes_few_queries_however_many_handlers(
    minute, tenants, django_assert_max_num_queries
):
    reader = signed_in(factories.superuser())
    live.forget()
    until = clock.now().replace(hour=3, minute=minute, second=0, microsecond=0)
    SummedUp.objects.update(until=until)
    with django_assert_max_num_queries(13):
        said(reader, range="30d")
