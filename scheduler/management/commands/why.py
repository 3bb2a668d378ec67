"""why: why a handler ran, did not run, or waits, for one tenant; why a job waits."""

import json as to_json
from argparse import ArgumentParser
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from audit import clock
from audit.text import visible
from jobworker import waiting
from jobworker.models import Job
from scheduler.why import explain
from workqueue import registry
from workqueue.exceptions import UnknownHandler
from workqueue.models import Tenant

NOT_FOUND = 3  # exit code


class Command(BaseCommand):
    """Prints sentences: reasons first, then facts."""

    help = (
        "Says why a handler ran, did not run or waits, for one tenant: paused, not eligible, still running, held, "
        "no worker, no master, its next slot, its last tick and run. For a long job's id: which cap, which exclusive "
        "peer, paused, or no worker for it. Exit code 3: no such handler, tenant or job. "
        "Examples: manage.py why notifications.deliver --tenant acme; manage.py why archival.apply_policies --tenant acme --json; "
        "manage.py why 0198f3a2-58e0-7b7e-a3b1-0c6d2f41b9e4"
    )
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """HANDLER, --tenant, --json."""
        parser.add_argument(
            "handler",
            help="key of a row of the timetable, e.g. notifications.deliver; or a job's id",
        )
        parser.add_argument(
            "--tenant", metavar="SLUG", help="the tenant's slug; not for a job"
        )
        parser.add_argument(
            "--json", action="store_true", help="a list of {code, text, reason}"
        )

    def handle(
        self, *_: Any, handler: str, tenant: str | None, json: bool, **__: Any
    ) -> None:
        """Print what `explain` finds."""
        if job := _job(handler):
            self._job(job, json=json)
            return
        if tenant is None:
            if _is_id(handler):
                raise CommandError(f"There is no job {handler}.", returncode=NOT_FOUND)
            raise CommandError("Say whose: --tenant SLUG.", returncode=2)
        try:
            found = explain(handler, tenant=Tenant.objects.get(slug=visible(tenant)))
        except UnknownHandler:
            raise CommandError(
                _no(handler, "handler", list(registry.rows())), returncode=NOT_FOUND
            ) from None
        except Tenant.DoesNotExist:
            slugs = list(Tenant.objects.values_list("slug", flat=True)[:10_000])
            raise CommandError(
                _no(tenant, "tenant", slugs), returncode=NOT_FOUND
            ) from None
        if json:
            self.stdout.write(to_json.dumps([asdict(one) for one in found], indent=2))
            return
        for one in found:
            self.stdout.write(f"{'!' if one.reason else '-'} {one.text}")

    def _job(self, job: Job, *, json: bool) -> None:
        text = waiting.why([job], clock.now()).get(job.id)
        said = (
            text
            or f"it is {job.get_status_display().lower()}: {job.error or job.summary or job.phase}"
        )
        if json:
            one = {"code": job.status, "text": said, "reason": text is not None}
            self.stdout.write(to_json.dumps([one], indent=2))
        else:
            self.stdout.write(f"{'!' if text else '-'} {job}: {said.rstrip(': ')}")


def _job(given: str) -> Job | None:
    """The job whose id that is."""
    return Job.objects.filter(pk=UUID(given)).first() if _is_id(given) else None


def _is_id(given: str) -> bool:
    try:
        UUID(given)
    except ValueError:
        return False
    return True


def _no(given: str, what: str, known: list[str]) -> str:
    near = get_close_matches(given, known, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no {what} {given!r}.{hint}"
