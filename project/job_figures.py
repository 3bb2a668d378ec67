"""job_figures: what /metrics tells of long jobs, with one statement more.

Of jobs that have ended `millrace_runs_total` tells, as of items: its handler is the
job's type, a word without a dot.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Min
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from jobworker import registry
from jobworker.models import Job
from workqueue import live
from workqueue.models import Node

LIMITS = (*registry.TIERS, "total")


def read(nodes: Sequence[Node], *, now: datetime) -> Iterator[Metric]:
    """`nodes`: the processes that are not stopped."""
    yield from _jobs(now)
    reports = [
        node.report
        for node in nodes
        if node.kind == Node.Kind.JOBWORKER and isinstance(node.report, Mapping)
    ]
    yield _limits(
        "job_limit_asked", "The caps of job workers, as they are set.", "caps", reports
    )
    yield _limits("job_limit", "The caps as they can be used.", "used", reports)
    asleep = _family("jobs_asleep", "Jobs that run and wait for the outside.")
    asleep.add_metric([], sum(_number(one, "asleep") for one in reports))
    yield asleep


def _jobs(now: datetime) -> Iterator[Metric]:
    jobs = _family("jobs", "Jobs that have not ended.", "tier", "status")
    oldest = _family(
        "job_oldest_pending_seconds",
        "Since the oldest waiting job that no pause holds back came.",
        "tier",
    )
    silent = _family(
        "job_silent_seconds", "Since the most silent running job gave a sign.", "tier"
    )
    free = ~live.current().held_back("type", now)
    waiting = _unfinished("pending", Min("created_at", filter=free))
    running = _unfinished("running", Min("progress_at"))
    found = {
        (tier, status): (count, first)
        for tier, status, count, first in waiting.union(running, all=True)
    }
    for tier in registry.TIERS:
        for status, ages in (("pending", oldest), ("running", silent)):
            count, first = found.get((tier, status), (0, None))
            jobs.add_metric([tier, status], count)
            ages.add_metric([tier], max(0.0, (now - (first or now)).total_seconds()))
    yield from (jobs, oldest, silent)


def _unfinished(status: str, since: Min) -> Any:
    """One status at a time: each has its index, so that ended jobs cost nothing."""
    of = Job.objects.filter(status=status).order_by()
    return of.values_list("tier", "status").annotate(count=Count("pk"), since=since)


def _limits(
    name: str, told: str, key: str, reports: Sequence[Mapping[str, Any]]
) -> Metric:
    """All job workers together: a cap is each one's own."""
    family = _family(name, told, "limit")
    for limit in LIMITS:
        said = [one.get(key) for one in reports]
        family.add_metric([limit], sum(_number(caps, limit) for caps in said))
    return family


def _number(said: object, key: str) -> int:
    """Reports are JSON of other releases too."""
    value = said.get(key) if isinstance(said, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _family(name: str, told: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"millrace_{name}", told, labels=labels)
