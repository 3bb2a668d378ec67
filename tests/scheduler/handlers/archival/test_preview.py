from collections.abc import Callable
from typing import Any

import pytest

from scheduler.handlers.archival import preview as module
from scheduler.handlers.archival.models import ArchivalPolicy
from scheduler.handlers.archival.preview import preview
from tests import factories

type Make = Callable[..., Any]


def test_a_tenants_policy_counts_its_own_old_rows(
    ctx: Make, policy: Make, event: Make
) -> None:
    mine = policy()
    event()
    event(days=1)
    event(tenant_id=factories.tenant().pk)

    found = preview(mine, now=ctx().now)

    assert found is not None
    assert (found.rows, found.told()) == (1, "1")
    assert found.before.isoformat() == "2026-10-30T00:00:00+00:00"


def test_a_default_counts_all_tenants_but_those_with_a_policy_of_their_own(
    ctx: Make, policy: Make, event: Make
) -> None:
    policy()
    default = policy(tenant=None)
    event()
    event(tenant_id=factories.tenant().pk)
    event(tenant_id=factories.tenant().pk)

    found = preview(default, now=ctx().now)

    assert found is not None
    assert found.rows == 2


def test_many_rows_are_counted_no_further_than_needed(
    ctx: Make, policy: Make, event: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COUNT_UP_TO", 2)
    mine = policy()
    for _ in range(4):
        event()

    found = preview(mine, now=ctx().now)

    assert found is not None
    assert (found.rows, found.told()) == (3, "2+")


def test_a_type_that_is_known_no_more_has_none(ctx: Make) -> None:
    gone = ArchivalPolicy(record_type="toasts", keep_days=3)

    assert preview(gone, now=ctx().now) is None
