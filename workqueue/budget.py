"""budget: the connections that all processes together may open, by what they report.

Each process says with its beat how large its pool may become and what stands outside
it. One that has not said so yet, or says it in a way of another release, counts as
what its kind needs.
"""

from collections.abc import Mapping

from workqueue import connections
from workqueue.models import Node

OUTSIDE = 3  # beat, listener, notifier
# Of max_connections: the server's own management, and sessions that it reserves.
KEPT_BY_SERVER = 20


def may_open(kind: str, report: object) -> int:
    """The connections that one process may open."""
    return sum(share(kind, report))


def share(kind: str, report: object) -> tuple[int, int]:
    """The connections of its pool, and those outside of it."""
    said = report.get("connections") if isinstance(report, Mapping) else None
    if isinstance(said, Mapping):
        pool, outside = said.get("pool"), said.get("outside")
        if isinstance(pool, int) and isinstance(outside, int):
            return max(0, pool), max(0, outside)
    need = connections.ROLES.get(kind, connections.ROLES["web"])
    return need.size + need.overflow, OUTSIDE


def wanted() -> int:
    """What the processes that are alive may open together. One query."""
    alive = Node.objects.alive().values_list("kind", "report")
    return sum(may_open(kind, report) for kind, report in alive)
