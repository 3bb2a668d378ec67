"""Eligible: which tenants a tick is for, counted without looking at each."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Q

from audit import clock
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue.eligible import Call, Census, candidates, census, tenants
from workqueue.registry import ACTIVE, Condition

pytestmark = pytest.mark.django_db

NEVER = Condition(reason="never", holds=lambda _: Q(pk=-1))
ALWAYS = Condition(reason="always", holds=lambda _: Q())
# NULL where the licence is unlimited: neither true nor false.
EXPIRED_BEFORE_NOW = Condition(
    reason="unlimited", holds=lambda now: Q(licence_expires_at__lt=now)
)


def call(*conditions: Condition, **values: Any) -> Call:
    return Call(row=row("plain", eligible=conditions), now=clock.now(), **values)


def test_everybody_is_counted_once() -> None:
    acme = factories.tenant("acme")
    factories.tenant("asleep", is_active=False)
    found = census(call(ACTIVE, paused=frozenset({acme.pk})))
    assert found == Census(called=1, paused=1, not_eligible={"inactive": 1})


def test_a_condition_that_is_null_for_a_tenant_does_not_hold() -> None:
    factories.tenant("acme")
    asked = call(ACTIVE, EXPIRED_BEFORE_NOW)
    assert census(asked) == Census(called=0, paused=0, not_eligible={"unlimited": 2})
    assert not tenants(asked).exists()


@pytest.mark.parametrize(
    "conditions", [(), (ALWAYS,), (ALWAYS, ACTIVE), (ACTIVE, ALWAYS)]
)
def test_rows_without_conditions_call_everybody(
    conditions: tuple[Condition, ...],
) -> None:
    factories.tenant("acme")
    assert census(call(*conditions)) == Census(called=2, paused=0, not_eligible={})
    assert tenants(call(*conditions)).count() == 2


def test_a_condition_that_never_holds_calls_nobody_and_says_why() -> None:
    assert census(call(NEVER)).not_eligible == {"never": 1}


def test_nobody_to_ask_for_makes_no_statement() -> None:
    assert candidates(call(ACTIVE), only=[]) is None


def test_the_census_is_one_question(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    with django_assert_num_queries(1):
        census(call(ACTIVE, NEVER, paused=frozenset({1, 2})))
