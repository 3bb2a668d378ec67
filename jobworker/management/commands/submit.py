"""submit: make a pending job."""

import getpass
import json as to_json
import re
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    RawDescriptionHelpFormatter,
)
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audit.text import visible
from jobworker import params as parameters
from jobworker import registry
from jobworker.exceptions import InvalidParams, Locked, UnknownType
from jobworker.submit import HIGHEST_PRIORITY, LOWEST_PRIORITY, submit
from workqueue import wakeup
from workqueue.models import Tenant

NOT_FOUND = 3  # exit code


class Command(BaseCommand):
    """Exit code 0: submitted. 1: refused, with a sentence per parameter. 3: no such type or tenant."""

    help = (
        "Submits a long job. Without TYPE it lists the types and their parameters. Examples: "
        "manage.py submit; manage.py submit packer_build --tenant acme --param template=golden; "
        'manage.py submit cluster_provision --tenant acme --params \'{"name": "demo", "nodes": 2}\' --json'
    )
    requires_migrations_checks = False

    def create_parser(self, *names: Any, **more: Any) -> Any:
        """As the stock one."""
        more.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(*names, **more)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """TYPE, whose, and with what."""
        parser.add_argument("type", nargs="?", help="a row of jobworker/dispatch.py")
        parser.add_argument(
            "--tenant", metavar="SLUG", help="whose; the platform's where not given"
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="may be repeated",
        )
        parser.add_argument(
            "--params", default="{}", metavar="JSON", help="all of them as an object"
        )
        parser.add_argument(
            "--priority",
            type=_priority,
            default=0,
            help=f"{LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, higher first among the tenant's own (0)",
        )
        parser.add_argument("--why", default="", help="kept with the change")
        parser.add_argument("--json", action="store_true", help="one object, to stdout")

    def handle(self, *_: Any, **given: Any) -> None:
        """Submit it, or say what is wrong."""
        if given["type"] is None:
            self._list()
            return
        try:
            job = submit(
                given["type"],
                {
                    **parameters.from_text(given["params"]),
                    **parameters.from_pairs(given["param"]),
                },
                tenant=_tenant(given["tenant"]),
                who=getpass.getuser(),
                origin="command",
                priority=given["priority"],
                why=given["why"],
            )
        except UnknownType as problem:
            raise CommandError(str(problem), returncode=NOT_FOUND) from None
        except InvalidParams as problem:
            lines = [f"{name}: {text}" for name, text in problem.problems.items()]
            raise CommandError("\n".join(lines)) from None
        except Locked as problem:
            raise CommandError(str(problem)) from None
        wakeup.flush()
        if given["json"]:
            self.stdout.write(
                to_json.dumps({"id": str(job.id), "type": job.type, "tier": job.tier})
            )
        else:
            self.stdout.write(
                f"Submitted {job} for {job.tenant_slug} as job {job.id}.\n"
                f"Follow it: manage.py job tail {job.id}"
            )

    def _list(self) -> None:
        for row in (row for row in registry.types().values() if row.by_hand):
            self.stdout.write(f"{row.type} ({row.tier}): {row.purpose}")
            for each in parameters.describe(registry.module(row.type).Params):
                default = "required" if each.required else f"default {each.default!r}"
                self.stdout.write(
                    f"    {each.name}  {each.sentence} {each.range}".rstrip()
                    + f" ({default})"
                )


def _priority(text: str) -> int:
    """A number in range, in ASCII digits."""
    if not re.fullmatch(r"[+-]?[0-9]{1,4}", text) or not (
        LOWEST_PRIORITY <= int(text) <= HIGHEST_PRIORITY
    ):
        raise ArgumentTypeError(
            f"{text!r} is no number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}"
        )
    return int(text)


def _tenant(slug: str | None) -> Tenant:
    if slug is None:
        return Tenant.objects.get(is_platform=True)
    found = Tenant.objects.filter(slug=visible(slug)).first()
    if found is None:
        raise CommandError(f"There is no tenant {slug!r}.", returncode=NOT_FOUND)
    return found
