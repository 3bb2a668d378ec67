"""why: why a handler ran, did not run, or waits, for one tenant."""

import json as to_json
from argparse import ArgumentParser
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.why import explain
from workqueue import registry
from workqueue.exceptions import UnknownHandler
from workqueue.models import Tenant

NOT_FOUND = 3  # exit code


class Command(BaseCommand):
    """Prints sentences: reasons first, then facts."""

    help = (
        "Says why a handler ran, did not run or waits, for one tenant: paused, not eligible, still running, held, "
        "no worker, no master, its next slot, its last tick and run. Exit code 3: no such handler or tenant. "
        "Examples: manage.py why notifications.deliver --tenant acme; manage.py why archival.apply_policies --tenant acme --json"
    )
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """HANDLER, --tenant, --json."""
        parser.add_argument(
            "handler", help="key of a row of the timetable, e.g. notifications.deliver"
        )
        parser.add_argument(
            "--tenant", required=True, metavar="SLUG", help="the tenant's slug"
        )
        parser.add_argument(
            "--json", action="store_true", help="a list of {code, text, reason}"
        )

    def handle(self, *_: Any, handler: str, tenant: str, json: bool, **__: Any) -> None:
        """Print what `explain` finds."""
        try:
            found = explain(handler, tenant=Tenant.objects.get(slug=tenant))
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


def _no(given: str, what: str, known: list[str]) -> str:
    near = get_close_matches(given, known, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no {what} {given!r}.{hint}"
