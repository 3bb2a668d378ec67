"""live: the settings and pauses in force, at most 5 s old in every process.

Everybody asks `current()`, which reads at most once in 5 s, in one statement. No bad
value and no lost database stops anybody: values are clamped by `policy.resolve`, and
while nothing can be read the last known stays in force. The scheduler reads the same
two columns in a larger statement of its own and hands them to `adopt`.
"""

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Q

from audit import clock
from workqueue import sql
from workqueue.bounds import Adjustment, read_json
from workqueue.policy import WorkerPolicy, as_values, resolve

logger = logging.getLogger(__name__)

FRESH = 5.0  # seconds
EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

# By vendor: two columns, without parameters, to be selected and given to `adopt`.
READ = {"postgresql": sql.LIVE_POSTGRESQL, "sqlite": sql.LIVE_SQLITE}


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    """A pause that no operator has ended."""

    id: int
    scope: str  # everything | handler | tenant | job_type
    handler: str  # key or job type; "" for other scopes
    tenant_id: int | None
    tenant: str  # slug; "" for other scopes
    reason: str
    who: str
    since: datetime
    until: datetime | None  # None: until somebody ends it

    def holds(self, now: datetime) -> bool:
        """Whether it is not over by itself."""
        return self.until is None or self.until > now

    def names(self, handler: str, tenant_id: int) -> bool:
        """Whether it stops this handler, or job type, for this tenant."""
        if self.scope == "tenant":
            return self.tenant_id == tenant_id
        return self.scope == "everything" or self.handler == handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What is in force."""

    policy: WorkerPolicy = field(default_factory=lambda: resolve({})[0])
    version: int = 0  # 0: all at its default, nobody has saved anything
    adjusted: tuple[Adjustment, ...] = ()
    pauses: tuple[PauseRow, ...] = ()

    def paused(self, handler: str, tenant_id: int, now: datetime) -> PauseRow | None:
        """The pause that keeps this from being enqueued by slot or claimed."""
        return next(
            (p for p in self.pauses if p.holds(now) and p.names(handler, tenant_id)),
            None,
        )

    def paused_handler(
        self, handler: str, now: datetime | None = None
    ) -> PauseRow | None:
        """The pause that stops it for every tenant."""
        moment = now or clock.now()
        whole = (p for p in self.pauses if p.scope != "tenant" and p.holds(moment))
        return next((p for p in whole if p.names(handler, 0)), None)

    def paused_tenants(self, now: datetime | None = None) -> frozenset[int]:
        """Tenants of which nothing is enqueued by slot or claimed."""
        moment = now or clock.now()
        of = [
            p.tenant_id for p in self.pauses if p.scope == "tenant" and p.holds(moment)
        ]
        return frozenset(id for id in of if id is not None)

    def held_back(self, kind: str, now: datetime) -> Q:
        """A condition on rows of tenants: a pause keeps them from being claimed.

        `kind`: their column with the handler, or the type of job.
        """
        names = [p.handler for p in self.pauses if p.handler and p.holds(now)]
        found = Q(tenant_id__in=self.paused_tenants(now)) | Q(**{f"{kind}__in": names})
        everything = any(p.scope == "everything" and p.holds(now) for p in self.pauses)
        return found | Q(pk__isnull=False) if everything else found

    def used(self) -> dict[str, int | bool | str]:
        """The value in use of every key, in its own unit; for reports and screens."""
        return as_values(self.policy)


_lock = threading.Lock()
_known: tuple[float, Live] | None = (
    None  # (clock.steady() of the reading, what was read)
)
_raw: tuple[str | None, str | None] | None = None
_failing = False


def current() -> Live:
    """What is in force, at most FRESH old while the database can be read."""
    known = _known
    if known is not None and clock.steady() - known[0] < FRESH:
        return known[1]
    return refresh()


def refresh() -> Live:
    """What is in force now. Never raises: the last known stays, or the defaults."""
    global _failing
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql.LIVE[connection.vendor])
            found = adopt(cursor.fetchone())
    except (DatabaseError, InterfaceError) as problem:
        return _keep(problem)
    if _failing:
        logger.info("settings are readable again version=%s", found.version)
    _failing = False
    return found


def adopt(columns: Sequence[str | None]) -> Live:
    """Take what the two columns of READ gave. Never raises."""
    global _known, _raw
    raw = (columns[0], columns[1])
    with _lock:
        # Most readings bring nothing new; parsing each would be wasted.
        if _known is not None and raw == _raw:
            found = _known[1]
        else:
            found = _parse(raw)
            _tell(found, before=_known[1] if _known else None)
        _known, _raw = (clock.steady(), found), raw
    return found


def forget() -> None:
    """Read again at the next call. Tests, and a child after a fork."""
    global _known, _raw, _failing
    _known, _raw, _failing = None, None, False


def _keep(problem: Exception) -> Live:
    global _known, _failing
    found = _known[1] if _known else Live()
    if not _failing:
        text = " ".join(str(problem).split())[:300]
        logger.warning(
            "settings cannot be read, version=%s stays: %s", found.version, text
        )
    _failing = True
    # Ask again when this answer is as old as a good one may get.
    _known = (clock.steady(), found)
    return found


def _parse(raw: tuple[str | None, str | None]) -> Live:
    version, values = _setting(raw[0])
    used, adjusted = resolve(values)
    return Live(policy=used, version=version, adjusted=adjusted, pauses=_pauses(raw[1]))


def _setting(text: str | None) -> tuple[int, object]:
    if not text:
        return 0, {}
    row = json.loads(text)
    return int(row["version"]), read_json(row["values"])


def _pauses(text: str | None) -> tuple[PauseRow, ...]:
    rows = json.loads(text) if text else []
    return tuple(
        PauseRow(
            **{
                **row,
                "tenant": row["tenant"] or "",
                "since": _moment(row["since"]),
                "until": _moment(row["until"]) if row["until"] else None,
            }
        )
        for row in rows
    )


def _moment(text: str) -> datetime:
    """PostgreSQL writes the offset, SQLite leaves out that it is UTC.

    What Python cannot hold, infinity for example, is as early or late as can be.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        early = text.startswith("-") or text.endswith("BC")
        moment = EARLIEST if early else LATEST
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _tell(found: Live, *, before: Live | None) -> None:
    # The first is in the first line of processes that stay; a command is here and gone.
    if before is not None and found.version != before.version:
        logger.info("settings version=%s in force", found.version)
    if before is None or found.adjusted != before.adjusted:
        for one in found.adjusted:
            logger.warning(
                "setting %s asked=%s used=%s: %s", one.key, one.asked, one.used, one.why
            )
