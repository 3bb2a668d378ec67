"""leader: who is master, since when, and until when its lease holds."""

import json as to_json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from audit import words
from scheduler.look import Lease, look
from workqueue.models import Node

NOBODY = 3  # exit code


class Command(BaseCommand):
    """Prints the lease."""

    help = (
        "Prints which server is master and its term. Exit code 0: there is a master; 3: there is none. "
        "Examples: manage.py leader; manage.py leader --json | jq -r .node"
    )
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--json."""
        parser.add_argument("--json", action="store_true", help="one object")

    def handle(self, *_: Any, json: bool, **__: Any) -> None:
        """Print, and say by the exit code whether there is one."""
        seen = look()
        servers = Node.objects.alive().filter(kind=Node.Kind.SERVER).count()
        if json:
            self.stdout.write(to_json.dumps(_as_json(seen.lease, servers), indent=2))
        else:
            self.stdout.write(_sentence(seen.lease, servers, now=seen.now))
        if seen.lease.free:
            raise SystemExit(NOBODY)


def _sentence(lease: Lease, servers: int, *, now: datetime) -> str:
    alive = f"{words.plural(servers, 'server node')} alive."
    if lease.free and not lease.term:
        return f"There is no master, and there never was one; {alive}"
    if lease.free:
        since = words.ago(lease.expires_at, now)
        return f"There is no master; the last, {lease.node} with term {lease.term:,}, ended {since}. {alive}"
    since = words.ago(lease.since, now)
    left = words.duration(lease.expires_at - now if lease.expires_at else None)
    return f"Master is {lease.node}, term {lease.term:,}, elected {since}; its lease holds for another {left}. {alive}"


def _as_json(lease: Lease, servers: int) -> dict[str, Any]:
    return {
        "master": not lease.free,
        "node_id": None if lease.free else str(lease.holder),
        "node": lease.node or None,  # the last one, where there is none
        "term": lease.term,
        "since": lease.since.isoformat() if lease.since else None,
        "expires_at": lease.expires_at.isoformat() if lease.expires_at else None,
        "servers_alive": servers,
    }
