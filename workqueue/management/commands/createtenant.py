"""createtenant: make a tenant."""

import getpass
import json as json_module
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from workqueue import tenancy
from workqueue.exceptions import InvalidValues


class Command(BaseCommand):
    """Exit code 0: made. 1: refused, with a sentence per value."""

    help = (
        "Makes a tenant. Example: manage.py createtenant acme --name 'Acme Ltd.' "
        "--time-zone Europe/Vienna --module compliance --licence-until 2027-12-31 --json"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What a tenant is made of."""
        parser.add_argument(
            "slug", help="letters, digits, hyphens; stands in logs and addresses"
        )
        parser.add_argument("--name", required=True, help="the name that people read")
        parser.add_argument(
            "--time-zone", default="UTC", help="like Europe/Vienna (UTC)"
        )
        parser.add_argument(
            "--module", action="append", default=[], help="may be repeated"
        )
        parser.add_argument(
            "--licence-until",
            type=_day,
            metavar="YYYY-MM-DD",
            help="the last day, UTC; without it the licence does not expire",
        )
        parser.add_argument("--why", default="", help="kept with the change")
        parser.add_argument("--json", action="store_true", help="one object, to stdout")

    def handle(self, *_: Any, **given: Any) -> None:
        """Make it, or say what is wrong."""
        try:
            made = tenancy.create(
                slug=given["slug"],
                name=given["name"],
                time_zone=given["time_zone"],
                modules=given["module"],
                licence_expires_at=given["licence_until"],
                who=getpass.getuser(),
                origin="command",
                why=given["why"],
            )
        except InvalidValues as refused:
            told = "\n".join(f"{key}: {text}" for key, text in refused.problems.items())
            raise CommandError(told) from None
        if given["json"]:
            told = json_module.dumps({"id": made.pk, **tenancy.as_values(made)})
        else:
            told = f"Tenant {made.slug} is made; it takes part from the next tick on."
        self.stdout.write(told)


def _day(text: str) -> datetime:
    """The end of a day."""
    return datetime.strptime(text, "%Y-%m-%d").replace(
        hour=23, minute=59, second=59, tzinfo=UTC
    )
