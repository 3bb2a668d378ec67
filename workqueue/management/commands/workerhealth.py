"""workerhealth: do the processes of this host beat? For health checks of containers."""

import json as json_module
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError

from workqueue import node
from workqueue.models import Node

EXIT_UNAVAILABLE = 69  # sysexits.h: nobody is to blame


class Command(BaseCommand):
    """Exit code 0: yes. 1: no. 69: it cannot be known."""

    help = (
        "Says whether the newest worker and job worker of this host beat. Exit code 0 if so, 1 if one is "
        "silent or none is there, 69 if the database does not answer or is not migrated. Examples: manage.py workerhealth; "
        "manage.py workerhealth --kind server --json"
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--kind and --json."""
        parser.add_argument(
            "--kind",
            action="append",
            choices=Node.Kind.values,
            help="this kind must be there; may be repeated (any of worker, jobworker)",
        )
        parser.add_argument("--json", action="store_true", help="one object, to stdout")

    def handle(self, *_: Any, kind: list[str] | None, json: bool, **__: Any) -> None:
        """Look, print, exit."""
        try:
            found = node.on_this_host(
                kinds=kind or [Node.Kind.WORKER, Node.Kind.JOBWORKER]
            )
        except DatabaseError as problem:
            said = " ".join(str(problem).split())
            self.stderr.write(f"it cannot be known, the database says: {said}")
            raise SystemExit(EXIT_UNAVAILABLE) from None
        missing = set(kind or ()) - {one.kind for one in found}
        healthy = bool(found) and all(one.fresh for one in found) and not missing
        if json:
            self.stdout.write(json_module.dumps(_as_object(found, healthy=healthy)))
        else:
            for one in found:
                word = "beats" if one.fresh else "is silent"
                self.stdout.write(
                    f"{one.kind} {one.name} {word}, last beat {one.age_s:.0f} s ago, {one.status}"
                )
            for name in sorted(missing) or ([] if found else ["worker or jobworker"]):
                self.stdout.write(f"no {name} has registered on this host")
        if not healthy:
            raise SystemExit(1)


def _as_object(found: list[node.Pulse], *, healthy: bool) -> dict[str, Any]:
    return {
        "healthy": healthy,
        "nodes": [
            {
                "id": str(one.id),
                "kind": one.kind,
                "name": one.name,
                "status": one.status,
                "fresh": one.fresh,
                "last_beat_s": round(one.age_s, 1),
            }
            for one in found
        ],
    }
