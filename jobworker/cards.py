"""cards: the status cards of the job workers, as they wrote them, and how old they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobworker import report
from workqueue import node
from workqueue.models import Node

OLD = timedelta(seconds=30)  # a card from here on says so
REDUCED = "reduced:"  # how a line of a card begins that says less than was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one job worker says of itself."""

    name: str
    host: str
    lines: tuple[tuple[str, bool], ...]  # of the card, and whether it is a reduction
    heartbeat_at: datetime
    age: timedelta
    reductions: tuple[tuple[str, int, int], ...]  # (key, asked, used)
    draining: bool
    stuck: int  # threads whose job is over and which do not end
    adjusted: tuple[tuple[str, str, str, str], ...]  # (key, asked, used, why)

    @property
    def reduced(self) -> bool:
        """It runs less than was asked of it."""
        return any(reduction for _, reduction in self.lines)

    @property
    def old(self) -> bool:
        """It is no picture of now."""
        return self.age > OLD


def alive(now: datetime) -> list[Card]:
    """The cards of all that live, by name. One query."""
    nodes = list(
        Node.objects.alive().filter(kind=Node.Kind.JOBWORKER).order_by("host", "pid")
    )
    named = zip(nodes, node.called(nodes), strict=True)
    return [card(each, name=name, now=now) for each, name in named]


def last_gone() -> Node | None:
    """The one that stopped last."""
    gone = Node.objects.filter(kind=Node.Kind.JOBWORKER, status=Node.Status.STOPPED)
    return gone.order_by("-heartbeat_at").first()


def card(of: Node, *, name: str, now: datetime) -> Card:
    """The card of one."""
    said = of.report if isinstance(of.report, dict) else {}
    stuck = said.get("stuck")
    text = report.card(of, name=name)
    return Card(
        name=name,
        host=of.host,
        lines=tuple((line, line.startswith(REDUCED)) for line in text.splitlines()),
        heartbeat_at=of.heartbeat_at,
        age=max(now - of.heartbeat_at, timedelta()),
        reductions=tuple(_reductions(said)),
        draining=of.status == Node.Status.DRAINING or said.get("loop") == "draining",
        stuck=stuck if isinstance(stuck, int) else 0,
        adjusted=tuple(
            (
                str(row.get("key")),
                str(row.get("asked")),
                str(row.get("used")),
                str(row.get("why")),
            )
            for row in _rows(said.get("adjusted"))
        ),
    )


def least(cards: Sequence[Card]) -> dict[str, tuple[int, int]]:
    """What is reduced anywhere: key -> (asked, the least that is used)."""
    found: dict[str, tuple[int, int]] = {}
    for what, asked, used in (one for each in cards for one in each.reductions):
        found[what] = (asked, min(used, found[what][1]) if what in found else used)
    return found


def _reductions(said: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    for row in _rows(said.get("reduced")):
        asked, used = row.get("from"), row.get("to")
        if isinstance(asked, int) and isinstance(used, int):
            yield str(row.get("what")), asked, used


def _rows(told: object) -> list[Mapping[str, Any]]:
    rows = told if isinstance(told, list) else []
    return [each for each in rows if isinstance(each, Mapping)]
