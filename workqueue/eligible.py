"""eligible: which tenants a tick is for, and why the others are left out.

Called by `enqueue`. Conditions are the Q objects of the timetable's row; everything
stays a query, so that 10,000 tenants never pass through this process.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Count, Q, QuerySet, Value
from django.utils.module_loading import import_string

from workqueue import registry, sql
from workqueue.models import Tenant, WorkItem
from workqueue.models.tenant import TenantQuerySet
from workqueue.registry import Handler

type Compiled = tuple[str, list[Any]]  # SQL and its parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Whom a tick calls."""

    row: Handler
    now: datetime  # database time
    only_due: bool = False  # only tenants for which the row's probe finds work
    paused: frozenset[int] = frozenset()  # tenants that are paused

    @property
    def takes_pairs(self) -> bool:
        """Its scope is a query of (tenant id, key) pairs."""
        return self.row.scope not in ("tenant", "platform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The tenants of a row, by what becomes of them."""

    called: int  # eligible and not paused
    paused: int  # eligible, but paused
    not_eligible: dict[str, int]  # reason -> tenants; the first that does not hold


def census(call: Call) -> Census:
    """Count, in one query. Does not ask who has work."""
    conditions = [one.holds(call.now) for one in call.row.eligible]
    # Those that pass the first condition, the first two, ...: a NOT would lose tenants
    # for which a condition is NULL.
    passed = [reduce(and_, conditions[: n + 1]) for n in range(len(conditions))]
    counts: dict[str, Count | Value] = {
        f"passed_{n}": Count("id", filter=q) for n, q in enumerate(passed)
    }
    among_paused = Q(id__in=call.paused) & (passed[-1] if passed else Q())
    if call.paused:
        counts["paused"] = Count("id", filter=among_paused)
    found = _of_scope(call).aggregate(everybody=Count("id"), **counts)
    steps = [found["everybody"], *(found[f"passed_{n}"] for n in range(len(passed)))]
    reasons = [one.reason for one in call.row.eligible]
    lost = {
        reason: before - after
        for reason, before, after in zip(reasons, steps, steps[1:], strict=False)
    }
    paused = found.get("paused", 0)
    return Census(
        called=steps[-1] - paused,
        paused=paused,
        not_eligible={reason: count for reason, count in lost.items() if count},
    )


def tenants(call: Call) -> TenantQuerySet:
    """Those that are called: eligible, not paused and, where asked, with work."""
    found = _of_scope(call)
    for condition in call.row.eligible:
        found = found.filter(condition.holds(call.now))
    if call.paused:
        found = found.exclude(id__in=call.paused)
    if call.only_due and (due := registry.due(call.row.key)):
        with_work = due(call.now)
        # What a probe of platform scope finds belongs to any tenant.
        if call.row.scope == "platform":
            return found if with_work.exists() else found.none()
        found = found.filter(id__in=with_work)
    return found


def candidates(
    call: Call, *, only: Collection[int] | None = None, without: Collection[int] = ()
) -> Compiled | None:
    """(tenant id, slug, dedup key) of every item to make, as SQL. None: there is none."""
    called = tenants(call)
    if only is not None:
        called = called.filter(id__in=only)
    if without:
        called = called.exclude(id__in=without)
    try:
        if not call.takes_pairs:
            return _compile(called.values_list("id", "slug", Value("")))
        pairs, pair_params = _compile(_pairs(call))
        text, params = _compile(called.values_list("id", "slug"))
    except EmptyResultSet:  # the ORM's way to say that a condition cannot hold
        return None
    return sql.CANDIDATE_PAIRS.format(pairs=pairs, tenants=text), [
        *pair_params,
        *params,
    ]


def live_items(call: Call) -> QuerySet[WorkItem]:
    """Items of the row that live already, of the tenants that are called."""
    items = WorkItem.objects.filter(
        handler=call.row.key, tenant_id__in=tenants(call).values("id")
    )
    return items if call.takes_pairs else items.filter(dedup_key="")


def _of_scope(call: Call) -> TenantQuerySet:
    everybody = Tenant.objects.order_by()
    return (
        everybody.filter(is_platform=True)
        if call.row.scope == "platform"
        else everybody
    )


def _pairs(call: Call) -> QuerySet[Any, Any]:
    pairs = import_string(call.row.scope)(call.now)
    if not isinstance(pairs, QuerySet):
        kind = type(pairs).__name__
        raise TypeError(
            f"{call.row.scope} must give a QuerySet of (tenant id, key), not {kind}"
        )
    return pairs.order_by()


def _compile(query: QuerySet[Any, Any]) -> Compiled:
    text, params = query.query.get_compiler(connection=connection).as_sql()
    return text, list(params)
