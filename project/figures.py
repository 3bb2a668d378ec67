"""figures: everything that /metrics tells, read from the database at one moment.

At most nine statements, none that grows with history. docs/metrics.md explains each
name; the alerts and the dashboard under deploy/ use them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Min, OuterRef, Subquery
from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from audit import tally
from jobworker import registry as job_types
from project import job_figures
from scheduler import servers
from scheduler.models import Schedule, Tick
from workqueue import live, registry
from workqueue.models import Node, Pause, WorkItem

# The states of a process's kind, so that those of which there is none are told as zero.
STATES = {
    kind: (
        *(("master", "standby") if kind == Node.Kind.SERVER else ("running",)),
        *("draining", "silent"),
    )
    for kind in Node.Kind
}


def read(*, now: datetime) -> Iterator[Metric]:
    """Everything, from the database."""
    master = servers.mastership(now)
    nodes = list(Node.objects.alive())
    processes = [servers.process(node, master, now=now) for node in nodes]
    yield _gauge(
        "build_info", "1, of the release that answers.", 1, version=settings.VERSION
    )
    yield from _queue(now)
    yield from _runs(now)
    yield from _ticks()
    yield from _master(master)
    yield from _processes(processes, now=now)
    yield from _workers([one for one in processes if one.kind == Node.Kind.WORKER])
    stuck = sum(one.stuck for one in processes)
    yield _gauge("threads_stuck", "Threads over their time limit.", stuck)
    yield from _settings(nodes, now=now)
    yield from job_figures.read(nodes, now=now)


def _queue(now: datetime) -> Iterator[Metric]:
    items = _labelled(
        "queue_items", "Live items by handler and status.", "handler", "status"
    )
    oldest = _labelled(
        "queue_oldest_seconds",
        "How long the oldest waiting item that no pause holds back has been due.",
        "handler",
    )
    rows = WorkItem.objects.order_by().values_list("handler", "status")
    free = ~live.current().held_back("handler", now)
    found = {
        (handler, status): (count, first)
        for handler, status, count, first in rows.annotate(
            count=Count("pk"), due=Min("not_before", filter=free)
        )
    }
    for handler in sorted({*registry.rows(), *(handler for handler, _ in found)}):
        for status in WorkItem.Status:
            count, first = found.get((handler, status), (0, None))
            items.add_metric([handler, status], count)
            if status == WorkItem.Status.PENDING:
                due = (now - (first or now)).total_seconds()
                oldest.add_metric([handler], max(0.0, due))
    yield from (items, oldest)


def _runs(now: datetime) -> Iterator[Metric]:
    runs = CounterMetricFamily(
        "millrace_runs", "Runs that ended, by outcome.", labels=["handler", "outcome"]
    )
    waited = _histogram(
        "run_wait_seconds", "From the enqueue to the claim, of first attempts."
    )
    ran = _histogram("run_duration_seconds", "From the start to the end of a run.")
    found = tally.read(now=now)
    for handler in sorted({*registry.rows(), *job_types.types(), *found}):
        counted = found.get(handler, tally.Counted())
        # Zeros too: of a counter that begins at 1, nobody sees the first.
        for outcome in tally.OUTCOMES:
            runs.add_metric([handler, outcome], counted.outcomes.get(outcome, 0))
        for family, lengths in ((waited, counted.waited), (ran, counted.ran)):
            family.add_metric([handler], _cumulated(lengths), lengths.seconds)
    yield from (runs, waited, ran)


def _ticks() -> Iterator[Metric]:
    lateness = _labelled(
        "tick_lateness_seconds", "How late the newest tick by slot was.", "handler"
    )
    at = _labelled(
        "tick_timestamp_seconds", "When the newest tick by slot was written.", "handler"
    )
    newest = Tick.objects.filter(
        handler=OuterRef("key"), trigger=Tick.Trigger.SLOT
    ).order_by("-slot")
    rows = Schedule.objects.values_list(
        "key",
        Subquery(newest.values("lateness_ms")[:1]),
        Subquery(newest.values("at")[:1]),
    )
    for key, late, moment in rows:
        if moment is not None:
            lateness.add_metric([key], late / 1000)
            at.add_metric([key], moment.timestamp())
    yield from (lateness, at)


def _master(master: servers.Mastership) -> Iterator[Metric]:
    yield _gauge(
        "master", "1 while a server holds the lease, 0 while nobody does.", master.held
    )
    yield _gauge("master_term", "The term: grows with every election.", master.term)
    if master.since is not None:
        yield _gauge(
            "master_since_timestamp_seconds",
            "When the term began.",
            master.since.timestamp(),
        )


def _processes(found: Sequence[servers.Process], *, now: datetime) -> Iterator[Metric]:
    counts = _labelled("nodes", "Processes that are not stopped.", "kind", "state")
    ages = _labelled(
        "heartbeat_age_seconds", "Since the oldest last beat of such processes.", "kind"
    )
    for kind, states in STATES.items():
        mine = [one for one in found if one.kind == kind]
        for state in states:
            counts.add_metric([kind, state], sum(one.state == state for one in mine))
        if mine:
            oldest = min(one.heartbeat_at for one in mine)
            ages.add_metric([kind], max(0.0, (now - oldest).total_seconds()))
    yield from (counts, ages)


def _workers(found: Sequence[servers.Process]) -> Iterator[Metric]:
    """What workers said with their last beats, all together."""
    limits = [one.limit for one in found if one.limit]
    yield _gauge(
        "slots_asked",
        "Items that workers should run at once.",
        sum(one.asked for one in limits),
    )
    yield _gauge(
        "slots", "Items that workers can run at once.", sum(one.used for one in limits)
    )
    yield _gauge(
        "slots_busy", "Items that they run.", sum(one.busy or 0 for one in found)
    )


def _settings(nodes: list[Node], *, now: datetime) -> Iterator[Metric]:
    known = live.current()
    # Job workers tell the version of a setting of their own.
    others = [node for node in nodes if node.kind != Node.Kind.JOBWORKER]
    reports = [node.report for node in others if isinstance(node.report, Mapping)]
    versions = [one["settings_version"] for one in reports if "settings_version" in one]
    behind = sum(version != known.version for version in versions)
    yield _gauge(
        "settings_version", "Version of Worker Node Configuration.", known.version
    )
    yield _gauge("settings_behind", "Processes that apply another version.", behind)
    yield _gauge(
        "workers_enabled", "START_WORKERS_ON_MASTER.", known.policy.start_workers
    )
    held = Counter(one.scope for one in known.pauses if one.holds(now))
    found = _labelled("pauses", "Pauses in force.", "scope")
    for scope in Pause.Scope.values:
        found.add_metric([scope], held[scope])
    yield found


def _gauge(name: str, told: str, value: float, **labels: str) -> Metric:
    family = _labelled(name, told, *labels)
    family.add_metric(list(labels.values()), float(value))
    return family


def _labelled(name: str, told: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"millrace_{name}", told, labels=labels)


def _histogram(name: str, told: str) -> HistogramMetricFamily:
    return HistogramMetricFamily(f"millrace_{name}", told, labels=["handler"])


def _cumulated(lengths: tally.Lengths) -> list[tuple[str, float]]:
    """Prometheus counts in each bucket all that are shorter, too."""
    total = 0
    found = []
    for end, number in zip((*tally.BUCKETS, "+Inf"), lengths.runs, strict=True):
        total += number
        found.append((str(end), float(total)))
    return found
