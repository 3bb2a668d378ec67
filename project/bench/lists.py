"""Pages over a full ledger and a long queue: milliseconds and statements, as their readers get them.

Whole answers of the server are timed, rendering included, and the statements counted.
Of Scheduler Audit Logs every filter, search and order is asked for, near the top and
deep down; besides the overview, Items, and Metrics in every range.
"""

import statistics
import time
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from audit import clock, ledger, metrics, sum_up
from audit.ledger import RunRecord
from project.bench import sql
from workqueue.models import Tenant

TENANTS = 2000
TIMES = 20  # each; the 19th of them is the p95
APART = timedelta(milliseconds=400)  # between two runs of the ledger
PER_ITEM = 25  # finished runs for each item that waits: 200,000 for five million


def addresses(count: int) -> dict[str, str]:
    """What is opened, by a name, with a ledger of `count` runs."""
    runs, items = reverse("admin:runs"), reverse("admin:items")
    of_metrics = {f"metrics, {name}": {"range": name} for name in metrics.RANGES}
    of_metrics["metrics of a tenant"] = {"range": "30d", "tenant": "bench-7"}
    return {
        "overview": reverse("admin:index"),
        "items": items,
        "items of a tenant": f"{items}?tenant=bench-7",
        **{
            name: f"{reverse('admin:metrics')}?{urlencode(query)}"
            for name, query in of_metrics.items()
        },
        **{
            name: f"{runs}?{urlencode(query, doseq=True)}"
            for name, query in asked(count).items()
        },
    }


def asked(count: int) -> dict[str, dict[str, Any]]:
    """What is asked of the list, by a name, of a ledger of `count` runs."""
    now = clock.now()
    deep = now - APART * (count * 98 // 100)
    place = f"{deep.isoformat()}_{UUID(int=0)}"
    bad = ["partial", "failed", "abandoned"]
    return {
        "first page": {},
        "deep page": {"older": place},
        "deep page, back": {"newer": place},
        "oldest first": {"sort": "oldest"},
        "tenant": {"tenant": "bench-7"},
        "three tenants": {"tenant": "bench-7,bench-70,bench-700"},
        "unknown tenant": {"tenant": "nobody"},
        "handler": {"handler": "listed.handler_3"},
        "rare handler": {"handler": "listed.rare"},
        "unknown handler": {"handler": "nothing"},
        "one outcome": {"outcome": "abandoned"},
        "failures": {"outcome": bad},
        "failures, deep": {"outcome": bad, "older": place},
        "worker": {"worker": "app-17"},
        "unknown worker": {"worker": "nowhere"},
        "trigger": {"trigger": "operator"},
        "time range": {
            "since": deep.isoformat(),
            "until": (deep + timedelta(hours=8)).isoformat(),
        },
        "ran over": {"ran_over": "30 s"},
        "ran over, none": {"ran_over": "2 h"},
        "waited over, none": {"waited_over": "2 h"},
        "tenant, handler, failures": {
            "tenant": "bench-7",
            "handler": "listed.handler_3",
            "outcome": bad,
        },
        "handler, failures, 24 h": {
            "handler": "listed.rare",
            "outcome": bad,
            "since": "24 h",
        },
        "all filters": {
            "tenant": "bench-7",
            "handler": "listed.handler_3",
            "outcome": bad,
            "worker": "app-17",
            "since": "7 d",
            "ran_over": "1 s",
            "text": "refused",
        },
        "text": {"text": "refused delivery 4200"},
        "text, none": {"text": "no error says so"},
        "text of one tenant, none": {"text": "no error says so", "tenant": "bench-7"},
        "text in result, none": {"result": "no result says so"},
        "last enqueued first": {"sort": "enqueued"},
        "longest run first": {"sort": "ran"},
        "longest run of a tenant": {"sort": "ran", "tenant": "bench-7"},
    }


def fill(count: int) -> None:
    """A ledger of so many runs, summed up, and a queue, as a busy installation has them."""
    for back in range(0, int(APART * count / timedelta(days=1)) + 32, 20):
        _make_month(clock.now() - timedelta(days=back))
    with connection.cursor() as cursor:
        cursor.execute(sql.TENANTS, {"count": TENANTS})
        cursor.execute(
            sql.RUNS, {"count": count, "apart": f"{APART.total_seconds()} s"}
        )
        cursor.execute(sql.VACUUM)
    sum_up.sum_up(clock.now(), goes_on=lambda: True)
    with connection.cursor() as cursor:
        cursor.execute(sql.ITEMS, {"each": max(1, count // PER_ITEM // TENANTS)})
        cursor.execute(sql.VACUUM)


def _make_month(moment: datetime) -> None:
    """The ledger makes the partition of a run that it is given."""
    tenant = Tenant.objects.get(is_platform=True)
    ledger.record(
        [
            RunRecord(
                id=clock.uuid7(moment),
                tenant_id=tenant.pk,
                tenant=tenant.slug,
                handler="listed.first",
                trigger="slot",
                enqueued_at=moment,
                claimed_at=moment,
                started_at=moment,
                finished_at=moment,
                outcome="succeeded",
                attempt=1,
            )
        ],
        finish_id=uuid4(),
    )


def in_full(count: int) -> dict[str, dict[str, float]]:
    """Fill the database of this process, and measure."""
    fill(count)
    return measured(count)


def measured(count: int, times: int = TIMES) -> dict[str, dict[str, float]]:
    """p50 and p95 in milliseconds, and statements, of everything that is opened."""
    client = Client(headers={"host": "localhost"})
    reader, _ = User.objects.get_or_create(
        username="bench", defaults={"is_staff": True, "is_superuser": True}
    )
    client.force_login(reader)
    found = {}
    for name, address in addresses(count).items():
        took = sorted(_timed(client, address) for _ in range(times))
        found[name] = {
            "p50": round(statistics.median(took), 1),
            "p95": round(took[round(times * 0.95) - 1], 1),
            "statements": _statements(client, address),
        }
    return found


def _timed(client: Client, address: str) -> float:
    began = time.perf_counter()
    _get(client, address)
    return (time.perf_counter() - began) * 1000


def _statements(client: Client, address: str) -> int:
    said = []

    def counted(execute: Any, statement: str, *rest: Any) -> Any:
        said.append(statement)
        return execute(statement, *rest)

    with connection.execute_wrapper(counted):
        _get(client, address)
    return len(said)


def _get(client: Client, address: str) -> None:
    answer = client.get(address)
    if answer.status_code != 200:
        raise RuntimeError(f"{address} answered {answer.status_code}")
