"""job: look at one job, follow its output, cancel it, adopt what it began."""

import getpass
import json as to_json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from audit import clock, queries, words
from audit.text import gate_json
from audit.transcript import LineRow
from jobworker import board, operate, waiting
from jobworker.exceptions import CannotAdopt, InvalidParams, Locked
from jobworker.models import Job
from workqueue import wakeup

NOT_FOUND = 3  # exit code
LOOK = 0.5  # seconds between looks while it is followed
AT_ONCE = 1000  # lines


class Command(BaseCommand):
    """One verb for one job."""

    help = (
        "Shows a job, follows its output until it ends, cancels it, or adopts what a failed one began "
        "outside. ID may be the first characters of it. Exit code 0: done; 1: it had ended, or cannot be adopted, "
        "tail: it did not succeed; 3: no such job; 130: Ctrl-C, a job that was followed goes on; 141: nobody reads the output any more. "
        "Examples: manage.py job show 0198f3; manage.py job tail 0198f3; manage.py job cancel 0198f3 --why 'wrong image'; "
        "manage.py job adopt 0198f3 --json"
    )
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do, and with which job."""
        parser.add_argument("verb", choices=("show", "tail", "cancel", "adopt"))
        parser.add_argument("id", help="the job's id, or its first characters")
        parser.add_argument("--why", default="", help="kept with the change")
        parser.add_argument("--json", action="store_true", help="one object, to stdout")

    def handle(
        self, *_: Any, verb: str, id: str, why: str, json: bool, **__: Any
    ) -> None:
        """Do it."""
        job = _found(id)
        if verb == "tail":
            self._tail(job)
        elif verb == "cancel":
            self._cancel(job, why=why, json=json)
        elif verb == "adopt":
            self._adopt(job, why=why, json=json)
        else:
            self._show(job, json=json)

    def _show(self, job: Job, *, json: bool) -> None:
        facts = _facts(job)
        if json:
            self.stdout.write(to_json.dumps(facts, default=str, indent=2))
            return
        for name, value in facts.items():
            if value not in (None, "", [], {}):
                self.stdout.write(f"{name:<12} {value}")

    def _tail(self, job: Job) -> None:
        after = 0
        while True:
            # Asked before the lines, so that none is missed that came before its end.
            job.refresh_from_db()
            for line in _lines(job, after):
                after = line.seq
                self.stdout.write(
                    f"{line.at:%H:%M:%S} {'ERROR ' if line.level >= 40 else ''}{line.text}"
                )
            self.stdout.flush()  # a pipe would get them by the 8 KB
            if job.status not in Job.UNFINISHED:
                break
            time.sleep(LOOK)
        self.stderr.write(_sentence(job))
        if job.status != Job.Status.SUCCEEDED:
            raise SystemExit(1)

    def _cancel(self, job: Job, *, why: str, json: bool) -> None:
        if not operate.cancel(job, who=getpass.getuser(), origin="command", why=why):
            job.refresh_from_db()
            raise CommandError(
                f"Job {job.id} was told to stop before."
                if job.status == Job.Status.RUNNING
                else f"Job {job.id} has ended already: {job.get_status_display().lower()}."
            )
        wakeup.flush()
        job.refresh_from_db()
        if json:
            self.stdout.write(to_json.dumps({"id": str(job.id), "status": job.status}))
            return
        running = job.status == Job.Status.RUNNING
        self.stdout.write(
            f"Job {job.id} is told to stop; follow it: manage.py job tail {job.id}"
            if running
            else f"Job {job.id} is cancelled. It had not begun."
        )

    def _adopt(self, job: Job, *, why: str, json: bool) -> None:
        try:
            heir = operate.adopt(job, who=getpass.getuser(), origin="command", why=why)
        except (CannotAdopt, InvalidParams, Locked) as problem:
            raise CommandError(str(problem)) from None
        wakeup.flush()
        if json:
            self.stdout.write(
                to_json.dumps({"id": str(heir.id), "adopts": str(job.id)})
            )
        else:
            self.stdout.write(
                f"Job {heir.id} follows what job {job.id} began. It starts nothing."
            )


def _found(given: str) -> Job:
    """The job of this id, or the only one whose id begins so."""
    plain = given.replace("-", "").lower()
    if not plain or len(plain) > 32 or set(plain) - set("0123456789abcdef"):
        raise CommandError(f"{given!r} is no id of a job.", returncode=NOT_FOUND)
    low, high = UUID(plain.ljust(32, "0")), UUID(plain.ljust(32, "f"))
    found = list(Job.objects.filter(id__gte=low, id__lte=high)[:2])
    if len(found) == 1:
        return found[0]
    raise CommandError(
        f"Several jobs begin with {given!r}: enter more of it."
        if found
        else f"There is no job {given!r}.",
        returncode=NOT_FOUND,
    )


def _lines(job: Job, after: int) -> Iterator[LineRow]:
    """What is stored behind line `after`."""
    while job.claim_id and (
        some := queries.lines(job.claim_id, after=after, limit=AT_ONCE)
    ):
        yield from some
        after = some[-1].seq


def _facts(job: Job) -> dict[str, Any]:
    now = clock.now()
    return {
        "id": str(job.id),
        "type": job.type,
        "subject": job.subject,
        "tenant": job.tenant_slug,
        "tier": job.tier,
        "status": job.status,
        "waits": waiting.why([job], now).get(job.id, ""),
        "phase": job.phase,
        "progress": job.progress,
        "parameters": gate_json(job.params),
        "priority": job.priority,
        "submitted": job.created_at,
        "by": job.created_by,
        "worker": job.node,
        "started": job.started_at,
        "heartbeat": job.heartbeat_at,
        "last sign": job.progress_at,
        "finished": job.finished_at,
        "lines": job.line_count,
        "left out": job.dropped_lines,
        "external": board.outside(job),
        "result": job.result,
        "summary": job.summary,
        "error code": job.error_code,
        "error": job.error,
        "adopts": str(job.adopts_id or ""),
        "adopt": operate.adoptable(job) or "possible: manage.py job adopt",
    }


def _sentence(job: Job) -> str:
    took = (
        f" after {words.duration(job.finished_at - job.started_at)}"
        if job.finished_at and job.started_at
        else ""
    )
    said = job.error or job.summary
    return f"{job.get_status_display()}{took}{f': {said}' if said else ''}"
