"""Millrace, for the benchmark that compares systems of this kind in one run.

    run.py --adapter tests/bench/peer_millrace.py --peers raw_batch,pgqueuer_b100 --only w1,w2

A no-op item and a stamped one, one worker process, WORKER_CONCURRENCY 10, everything
recorded: a Run per item with its indexes, and a transcript.
"""

import os
import sys
from pathlib import Path

from benchlib import DSN, SCRATCH

ROOT = Path(__file__).resolve().parents[2]
META = dict(  # noqa: C408  the harness looks for this form
    venv="../../.venv",
    dists=["django", "psycopg"],
    store="pg",
    config="runworker, WORKER_CONCURRENCY 10, LISTEN/NOTIFY on, a run row per item",
    bulk="one INSERT .. SELECT, as a tick",
    done_sql="select count(*) from workqueue_workitem",
    history_sql="""insert into audit_run (id, kind, item_id, tenant_id, tenant, handler, dedup_key, trigger,
        enqueued_at, claimed_at, started_at, finished_at, node, attempt, recoveries, outcome, seen, changed,
        skipped, failed, summary, error, transcript, line_count, dropped_lines, finish_id)
        select gen_random_uuid(), 'item', g, g %% 10000, 't', 'ticked', '', 'call', now(), now(), now(),
        now() - g * interval '1 ms', 'n', 1, 0, 'succeeded', 1, 0, 0, 0, '', '', '', 0, 0, gen_random_uuid()
        from generate_series(1, %(n)s) g""",
)
_ready = []


def _django():
    if not _ready:
        sys.path.insert(0, str(ROOT))
        os.environ.update(
            DJANGO_SETTINGS_MODULE="tests.bench.settings",
            DATABASE_URL=DSN,
            MILLRACE_DATA_DIR=SCRATCH,
        )
        import django

        django.setup()
        _ready.append(True)


def setup():
    _django()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into workqueue_tenant (slug, name, is_platform, is_active, modules, time_zone)"
            " select 't' || g, 't', false, true, '[]', 'UTC' from generate_series(1, 10000) g"
        )


def _platform():
    from workqueue.models import Tenant

    return Tenant.objects.get(is_platform=True)


def enqueue_one(n):
    import time

    _django()
    from workqueue.enqueue import enqueue

    tenant = _platform()
    t = time.perf_counter()
    for i in range(n):
        enqueue("ticked", tenant=tenant, dedup_key=str(i))
    return time.perf_counter() - t


def enqueue_bulk(n):
    import time

    _django()
    from django.db import transaction

    from audit import clock
    from workqueue import registry
    from workqueue.eligible import Call
    from workqueue.enqueue import enqueue_tick
    from workqueue.models import Tenant

    Tenant.objects.filter(is_platform=False).exclude(
        pk__in=Tenant.objects.filter(is_platform=False).order_by("pk").values("pk")[:n]
    ).update(is_active=False)
    t = time.perf_counter()
    with transaction.atomic():
        made = enqueue_tick(
            Call(row=registry.row("ticked"), now=clock.now()),
            trigger="slot",
            tick_id=1,
            slot=clock.now(),
        )
    spent = time.perf_counter() - t
    # The platform's own tenant is called too; its item must not count.
    assert made.enqueued in (n, n + 1), made
    return spent


def enqueue_stamped():
    import time

    _django()
    from workqueue.enqueue import enqueue

    t0 = time.time_ns()
    enqueue("stamped", tenant=_platform(), dedup_key=str(t0))


def worker():
    _django()
    from django.core.management import call_command

    call_command("runworker")
