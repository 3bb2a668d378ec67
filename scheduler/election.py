"""election: take, renew and resign the lease; a term is a number that only grows.

The database decides who is master: one row, `MasterLease`. What this process believes
may only make it do less. Two threads use an Election: the ticker takes the lease, acts
and resigns; the beat thread renews and watches the ticker. What must stay true:
- taking over, and every change of holder or term, is SELECT ... FOR UPDATE in a
  transaction of its own: it waits for whatever the old master is writing;
- whatever the master writes stands inside `acting()`, which holds FOR KEY SHARE;
- an error while renewing means *unknown*: no act until a renewal succeeds;
- no act later than keep-alive minus one beat after the last confirmed renewal,
  counted from before that request was sent: a reply that took long is old news.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import F, Q

from audit import clock, ledger
from scheduler import sql
from scheduler.exceptions import NotMaster, Unsure
from scheduler.look import Lease
from scheduler.models import MasterLease
from workqueue import node
from workqueue.node import Me

logger = logging.getLogger(__name__)

NO_PROGRESS = timedelta(
    seconds=30
)  # a master whose ticker stands still for this long resigns


LOCKED = "55P03"  # lock_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What this process believes of its term."""

    number: int
    confirmed: float  # clock.steady() before the request that last confirmed it
    known: bool  # False: the last renewal failed, so anybody may be master by now


class Election:
    """This process's part in the election."""

    def __init__(self, *, me: Me) -> None:
        """A standby, until `take` says otherwise."""
        self._me = me
        self._term: Term | None = None
        self._lock = threading.Lock()
        self._progress = clock.steady()

    @property
    def term(self) -> int | None:
        """The term that this process believes to be its own."""
        term = self._term
        return term.number if term else None

    # --- the ticker's thread

    def take(self) -> bool:
        """Become master where nobody is. False: somebody else was quicker."""
        sent = clock.steady()
        try:
            taken = self._take()
        except OperationalError as problem:
            if getattr(problem.__cause__, "sqlstate", None) == LOCKED:
                return False  # the old master is writing, or another standby was first
            raise
        if taken is None:
            return False
        self._begin(taken, sent=sent, known=True)
        logger.info("elected node=%s term=%s", self._me.name, taken)
        return True

    def follow(self, lease: Lease) -> None:
        """Compare what a look saw with what this process believes.

        A lease that names this process while it believes nothing is a take-over whose
        reply was lost: it becomes a term that is not known, for the next renewal to
        confirm.
        """
        if self._term is None and lease.holder == self._me.id and not lease.free:
            self._begin(lease.term, sent=clock.steady(), known=False)
        elif self._term is not None and (lease.holder, lease.term) != (
            self._me.id,
            self._term.number,
        ):
            self._over(self._term.number)

    def may_act(self) -> bool:
        """Whether this process may act as master at this moment, as far as it can know."""
        term = self._term
        return (
            term is not None
            and term.known
            and clock.steady() - term.confirmed < _fence()
        )

    @contextmanager
    def acting(self) -> Iterator[int]:
        """A transaction of the master; gives its term. Everything it writes stands in one.

        Raises NotMaster when the term is over, Unsure (one of these) when that cannot
        be told, and whatever the caller's own statements raise.
        """
        term = self._term
        if term is None:
            raise NotMaster
        if not self.may_act():
            raise Unsure
        with transaction.atomic(durable=True):
            ours, live = self._hold(term.number)
            if ours and live:
                yield term.number
                return
        if not ours:
            self._over(term.number)
            raise NotMaster
        # Expired, and nobody took it: a renewal can still bring it back.
        self._change(term.number, known=False)
        raise Unsure

    def passed(self) -> None:
        """The ticker made progress."""
        self._progress = clock.steady()

    def resign(self, *, text: str) -> bool:
        """Give the lease back and wake the standbys. False: it was not ours to give."""
        term = self._forget()
        if term is None:
            return False
        with transaction.atomic(durable=True):
            _wait_briefly()
            mine = MasterLease.objects.select_for_update().filter(
                id=1, holder=self._me.id, term=term.number
            )
            if mine.first() is None:
                return False
            # The name stays: "nobody since ..., the last was ...".
            MasterLease.objects.filter(id=1).update(
                holder=None, expires_at=clock.DatabaseNow()
            )
            self._tell("resigned", term=term.number, text=text)
            wake_servers()
        logger.info("resigned node=%s term=%s: %s", self._me.name, term.number, text)
        return True

    # --- the beat's thread

    def renew(self) -> None:
        """Renew the lease by a plain UPDATE. Raises what the database raises."""
        term = self._term
        if term is None:
            return
        sent = clock.steady()
        mine = MasterLease.objects.filter(id=1, holder=self._me.id, term=term.number)
        try:
            with transaction.atomic():
                _wait_briefly()
                renewed = mine.update(
                    renewed_at=clock.DatabaseNow(), expires_at=_expiry()
                )
        except (DatabaseError, InterfaceError):
            self._change(term.number, known=False)
            raise
        if renewed:
            self._change(term.number, known=True, confirmed=sent)
        else:
            self._over(term.number)

    def watch(self) -> None:
        """Resign where the ticker stands still: leadership is tied to progress."""
        still = clock.steady() - self._progress
        if self._term is None or still < NO_PROGRESS.total_seconds():
            return
        # From here on nothing renews it, so it expires even where a stuck tick holds
        # the row and resigning in order fails.
        self.resign(text=f"its ticker made no pass for {still:.0f} s")

    # --- both

    def _take(self) -> int | None:
        """The term that was taken. None: the lease is held."""
        free = (
            Q(holder=None) | Q(expires_at=None) | Q(expires_at__lte=clock.DatabaseNow())
        )
        with transaction.atomic(durable=True):
            _wait_briefly()
            # Never no_key=True: it slips past what the old master holds.
            lease = MasterLease.objects.select_for_update().filter(free, id=1).first()
            if lease is None:
                return None
            MasterLease.objects.filter(id=1).update(
                holder=self._me.id,
                node=self._me.name,
                term=F("term") + 1,
                since=clock.DatabaseNow(),
                renewed_at=clock.DatabaseNow(),
                expires_at=_expiry(),
            )
            self._tell("elected", term=lease.term + 1, text=_former(lease))
        return lease.term + 1

    def _hold(self, number: int) -> tuple[bool, bool]:
        try:
            return _hold_lease(holder=self._me, term=number)
        except (DatabaseError, InterfaceError) as problem:
            self._change(number, known=False)
            logger.warning("the lease could not be held term=%s: %s", number, problem)
            raise Unsure from problem

    def _begin(self, number: int, *, sent: float, known: bool) -> None:
        with self._lock:
            self._term = Term(number=number, confirmed=sent, known=known)
            self._progress = clock.steady()

    def _change(
        self, number: int, *, known: bool, confirmed: float | None = None
    ) -> None:
        """Note what was learned about a term, unless another one has begun meanwhile."""
        with self._lock:
            if (term := self._term) is not None and term.number == number:
                self._term = replace(
                    term,
                    known=known,
                    confirmed=term.confirmed if confirmed is None else confirmed,
                )

    def _forget(self) -> Term | None:
        with self._lock:
            term, self._term = self._term, None
            return term

    def _over(self, number: int) -> None:
        """The database says that the term is over."""
        with self._lock:
            if self._term is None or self._term.number != number:
                return
            self._term = None
        logger.warning("lost the lease node=%s term=%s", self._me.name, number)
        try:
            self._tell("deposed", term=number, text="found its term over")
        except (DatabaseError, InterfaceError) as problem:
            logger.warning(
                "could not record the lost lease term=%s: %s", number, problem
            )

    def _tell(self, type: str, *, term: int, text: str) -> None:
        ledger.node_event(
            node_id=self._me.id,
            node=self._me.name,
            kind=self._me.kind,
            type=type,
            text=text,
            term=term,
        )


def wake_servers() -> None:
    """Let every server look now. In the caller's transaction: sent when it commits.

    Where servers do not listen they look every second anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(sql.WAKE_SERVERS)


def _hold_lease(*, holder: Me, term: int) -> tuple[bool, bool]:
    """Lock the lease FOR KEY SHARE; whether it is ours, and whether it is alive."""
    if connection.vendor != "postgresql":
        # BEGIN IMMEDIATE has the whole database: no row needs a lock.
        lease = MasterLease.objects.filter(id=1)
        alive = lease.filter(expires_at__gt=clock.DatabaseNow())
        return lease.filter(holder=holder.id, term=term).exists(), alive.exists()
    with connection.cursor() as cursor:
        cursor.execute(sql.MASTER_TIMEOUTS)
        cursor.execute(
            sql.HOLD_LEASE, {"holder": holder.id, "term": term, "now": clock.fixed()}
        )
        ours, live = cursor.fetchone() or (False, False)
        return ours, live


def _wait_briefly() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(sql.ELECTION_TIMEOUT)


def _expiry() -> object:
    return clock.later(settings.KEEP_ALIVE.total_seconds())


def _fence() -> float:
    """Seconds after a confirmed renewal during which its term may be acted on."""
    return (settings.KEEP_ALIVE - node.interval()).total_seconds()


def _former(lease: MasterLease) -> str:
    if lease.term == 0:
        return "the first master of this installation"
    if lease.holder is None:
        return f"{lease.node or 'the last master'} had resigned term {lease.term}"
    silent = (clock.now() - lease.renewed_at).total_seconds() if lease.renewed_at else 0
    return (
        f"{lease.node} had not renewed its lease, term {lease.term}, since "
        f"{lease.renewed_at:%Y-%m-%d %H:%M:%S} UTC; no master for {silent:.1f} s"
    )
