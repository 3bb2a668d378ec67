"""waiting: why a pending job waits, as a sentence.

Asked of the pauses, the running jobs and what the workers say of themselves: which cap,
which exclusive peer, paused, no worker for it. Whether there is room is room.py's to say,
as it is for the claim. Reports are JSON of other releases too: whatever stands in them, a
sentence comes out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from audit import words
from jobworker.installed import FOLDER
from jobworker.models import Job
from jobworker.registry import TIERS
from jobworker.room import Room
from workqueue import live, node
from workqueue.models import Node

MOST = 3  # workers that are named
UNTOLD = 2**31  # a limit that a report does not have: no reason to wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A live job worker, by its own report."""

    name: str
    room: Room
    types: frozenset[str] | None  # None: not said yet
    lacks: Mapping[str, str]  # type -> the program that is missing
    draining: bool

    def refuses(self, job: Job) -> str:
        """Why it does not take the job; "": it will, at its next pass."""
        if self.draining:
            return f"{self.name} is draining"
        if program := self.lacks.get(job.type):
            lacks = "cannot be written" if program == FOLDER else "is not installed"
            return f"{self.name} cannot serve {job.tier}: {program} {lacks}"
        room = self.room
        match room.full(job.tier):
            case "":
                return ""
            case "total":
                return f"the cap total = {room.total} is reached on {self.name}"
            case "usable":
                stuck = f" beside {room.stuck} stuck thread(s)" if room.stuck else ""
                return f"{self.name} runs as many jobs as its connection pool serves{stuck}, {room.usable}"
            case "threads":
                stuck = f", {room.stuck} of them stuck" if room.stuck else ""
                return f"{self.name} uses all of its {room.threads} threads{stuck}"
            case tier if cap := room.caps[tier]:
                return f"the cap {tier} = {cap} is reached on {self.name}"
            case tier:
                return f"the cap {tier} is 0 on {self.name}"


def why(jobs: Sequence[Job], now: datetime) -> dict[UUID, str]:
    """For each pending job of these why it waits. Three queries, however many jobs."""
    waiting = [job for job in jobs if job.status == Job.Status.PENDING]
    if not waiting:
        return {}
    running = list(
        Job.objects.running().values_list(
            "id", "exclusive", "node_id", "tier", "started_at"
        )
    )
    peers = {group: (id, at) for id, group, _, _, at in running if group}
    by_node: dict[UUID | None, Counter[str]] = {}
    for _, _, node_id, tier, _ in running:
        by_node.setdefault(node_id, Counter())[tier] += 1
    alive = list(
        Node.objects.alive().filter(kind=Node.Kind.JOBWORKER).order_by("host", "pid")
    )
    workers = [
        _worker(each, name=name, running=by_node.get(each.id, Counter()))
        for each, name in zip(alive, node.called(alive), strict=True)
    ]
    pauses = live.current()
    return {
        job.id: _why(job, workers, peers=peers, pauses=pauses, now=now)
        for job in waiting
    }


def _why(
    job: Job,
    workers: Sequence[Worker],
    *,
    peers: Mapping[str, tuple[UUID, datetime | None]],
    pauses: live.Live,
    now: datetime,
) -> str:
    if pause := pauses.paused(job.type, job.tenant_id, now):
        until = f" until {pause.until:%Y-%m-%d %H:%M} UTC" if pause.until else ""
        return f"paused{until} by {pause.who}: “{pause.reason}”"
    if not workers:
        return "no job worker is alive; start one with manage.py runjobworker"
    if job.tier not in TIERS:
        return f"no worker serves the tier {job.tier!r}; there are {', '.join(TIERS)}. Cancel it and submit it again"
    knowing = [one for one in workers if one.types is None or job.type in one.types]
    if not knowing:
        return f"no live job worker knows the type {job.type}; update the workers"
    if job.exclusive and (peer := peers.get(job.exclusive)):
        since = f" for {words.duration(now - peer[1])}" if peer[1] else ""
        return f"one at a time: job {str(peer[0])[:8]}… of the group {job.exclusive} runs{since}"
    refusals = [one.refuses(job) for one in knowing]
    if all(refusals):
        more = len(refusals) - MOST
        tail = [f"and {more} more workers likewise"] if more > 0 else []
        return "; ".join([*refusals[:MOST], *tail])
    return "starts with the next pass"


def _worker(of: Node, *, name: str, running: Counter[str]) -> Worker:
    said = of.report if isinstance(of.report, dict) else {}
    types, lacks = said.get("types"), said.get("lacks")
    return Worker(
        name=name,
        room=_room(said, running),
        types=frozenset(map(str, types)) if isinstance(types, list) else None,
        lacks={
            str(type): str(program)
            for program, names in (lacks if isinstance(lacks, dict) else {}).items()
            if isinstance(names, list)
            for type in names
        },
        draining=of.status == Node.Status.DRAINING or said.get("loop") == "draining",
    )


def _room(said: Mapping[str, Any], running: Counter[str]) -> Room:
    """By its report, but for what runs: the jobs' rows are newer."""
    # As they were asked for: of the total, "used" has what the pool leaves of it.
    found = said.get("caps")
    caps = found if isinstance(found, dict) else {}
    return Room(
        caps={tier: _number(caps.get(tier), UNTOLD) for tier in TIERS},
        total=_number(caps.get("total"), UNTOLD),
        usable=_number(said.get("usable"), UNTOLD),
        threads=_number(said.get("threads"), UNTOLD),
        running=running,
        awake=running.total() - _number(said.get("asleep"), 0),
        stuck=_number(said.get("stuck"), 0),
    )


def _number(value: object, untold: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else untold
