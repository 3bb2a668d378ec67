"""board: what lists and pages say of a job, from its row alone.

Nothing here asks the database. What stands in a JSON column may be of another release:
whatever it is, something can be shown.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from audit import mask, words
from audit.text import gate, gate_json
from jobworker import registry
from jobworker.exceptions import UnknownType
from jobworker.models import Job
from jobworker.report import awake_words
from workqueue.models import Node
from workqueue.node import stopped_after

SILENT = timedelta(minutes=5)  # without a line, a phase or progress; then it is said


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of a job's work."""

    name: str
    took: timedelta | None
    state: str  # of words.STATES


def state(job: Job) -> str:
    """Its state as words.STATES names it."""
    return f"job_{job.status}" if job.status in Job.UNFINISHED else job.status


def lasted(job: Job, now: datetime) -> timedelta | None:
    """How long it waits, runs or ran; None: it never began."""
    since = job.created_at if job.status == Job.Status.PENDING else job.started_at
    return None if since is None else max((job.finished_at or now) - since, timedelta())


def waited(job: Job, now: datetime) -> timedelta:
    """From the submit until it was claimed, or ended unclaimed."""
    return max((job.claimed_at or job.finished_at or now) - job.created_at, timedelta())


def coarse(span: timedelta | None) -> str:
    """12 min, 41 s: as much as a reader of a list needs of a length."""
    if span is None or span < timedelta(seconds=1):
        return words.duration(span)
    seconds = int(span.total_seconds())
    return words.duration(
        timedelta(seconds=seconds - seconds % 60 if seconds >= 60 else seconds)
    )


def silent_for(job: Job, now: datetime) -> timedelta | None:
    """How long a running job has given no sign while its worker lives; None: it is not silent."""
    sign = job.progress_at or job.started_at
    if job.status != Job.Status.RUNNING or sign is None or unheard_for(job, now):
        return None
    quiet = now - sign
    return quiet if quiet > SILENT else None


def unheard_for(job: Job, now: datetime) -> timedelta | None:
    """How long nothing has been heard of a running job's worker; None: its heartbeat is fresh."""
    beat = job.heartbeat_at or job.claimed_at
    if job.status != Job.Status.RUNNING or beat is None:
        return None
    age = now - beat
    return age if age > stopped_after(Node.Kind.JOBWORKER) else None


def phases(job: Job, now: datetime) -> list[Phase]:
    """What it did, in order, each with how long it took."""
    rows = job.phases if isinstance(job.phases, list) else []
    known = [each for each in rows if isinstance(each, dict)]
    starts = [_moment(each.get("at")) for each in known]
    last = {
        Job.Status.RUNNING: "job_running",
        Job.Status.FAILED: "failed",
        Job.Status.CANCELLED: "cancelled",
    }.get(Job.Status(job.status), "succeeded")
    found = []
    for place, each in enumerate(known):
        newest = place == len(known) - 1
        start = starts[place]
        end = (job.finished_at or now) if newest else starts[place + 1]
        found.append(
            Phase(
                name=words.shown(str(each.get("name"))),
                took=max(end - start, timedelta()) if start and end else None,
                state=last if newest else "succeeded",
            )
        )
    return found


def named(values: object) -> list[tuple[str, str]]:
    """The values of a JSON column by their names, secrets masked."""
    found = gate_json(values)
    if not isinstance(found, dict):
        return [("", told(found))] if found not in (None, "", []) else []
    return [(str(name), told(value)) for name, value in found.items()]


def told(value: Any) -> str:
    """One value as people write it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def typed(params: object) -> dict[str, str]:
    """Parameters as they would be typed again. Secrets are left out: they must be."""
    if not isinstance(params, dict):
        return {}
    return {
        str(name): told(value)
        for name, value in params.items()
        if not mask.telling_key(str(name))
        and value is not None
        # A secret inside of a text is left out with it: masked, it would be submitted.
        and gate(told(value)) == told(value)
    }


def outside(job: Job) -> Any:
    """What it began outside, as JSON for readers, secrets masked; None: nothing.

    What becomes of it without its worker ("then") stands in the error of those that lost it.
    """
    ref = gate_json(job.external_ref)
    if isinstance(ref, dict):
        ref.pop("then", None)
    return ref


def external(job: Job) -> str:
    """What it began outside: "apply of deployment demo, host build-1, pid 4127"."""
    ref = outside(job)
    if not isinstance(ref, dict):
        return "" if ref is None else told(ref)
    rest = [f"{name} {told(value)}" for name, value in ref.items() if name != "what"]
    return ", ".join([*([told(ref["what"])] if "what" in ref else []), *rest])


def program_words(job: Job) -> str:
    """'The program packer (pid 4127) runs and has used 11 min of CPU.', as its worker last said."""
    said = _told_by_its_worker(job).get("programs")
    for one in said if isinstance(said, list) else []:
        if isinstance(one, dict) and one.get("claim") == str(job.claim_id):
            used, cpu = one.get("cpu_s"), ""
            if isinstance(used, int | float):
                cpu = f" and has used {words.duration(timedelta(seconds=used))} of CPU"
            return f"The program {one.get('program')} (pid {one.get('pid')}) runs{cpu}."
    return ""


def waking_words(job: Job) -> str:
    """Of a job that has slept and waits for its turn: for what, as its worker last said."""
    said = _told_by_its_worker(job)
    waking = said.get("waking")
    if not isinstance(waking, list) or str(job.claim_id) not in waking:
        return ""
    return f"It has slept and waits {awake_words(said)}."


def cancel_does(job: Job) -> str:
    """What Cancel does to a job of its type."""
    if _programs(job):
        return "SIGINT to the whole process group, SIGKILL to what is left"
    return "it stops at its next look, within 2 s"


def if_worker_dies(job: Job) -> str:
    """What becomes of a job whose worker is gone."""
    try:
        follows = registry.follow(job.type)
    except (UnknownType, ImportError):
        follows = None
    after = "; Adopt follows what it began outside" if follows else ""
    return f"the job fails and is not started again{after}"


def purpose(type: str) -> str:
    """What jobs of a type are for; "": this release does not know it."""
    row = registry.types().get(type)
    return row.purpose if row else ""


def lag_words(job: Job) -> str:
    """'stored 0.2 s after they were written'."""
    if job.output_lag_ms is None:
        return ""
    lag = words.duration(timedelta(milliseconds=max(job.output_lag_ms, 0)))
    return f"stored {lag} after they were written"


def _told_by_its_worker(job: Job) -> dict[str, Any]:
    node = Node.objects.filter(id=job.node_id).first() if job.node_id else None
    return node.report if node and isinstance(node.report, dict) else {}


def _programs(job: Job) -> tuple[str, ...]:
    row = registry.types().get(job.type)
    return row.programs if row else ()


def _moment(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
