"""What can go wrong when time ticks. The docstring is the message."""

import sqlite3

from django.db import InterfaceError, InternalError, OperationalError

# Lost connections, servers that shut down, transactions that stood idle for too long.
LOST = ("08", "57P", "25P03")


class SchedulerError(Exception):
    """The scheduler could not do what was asked."""

    def __init__(self, message: str = "") -> None:
        """Take the class's docstring where no message is given."""
        super().__init__(message or (self.__doc__ or "").strip())


class InvalidCadence(SchedulerError):
    """This is not a cadence."""


class NotMaster(SchedulerError):
    """This process is not master: the term is over."""


class Unsure(NotMaster):
    """Whether this process is still master is not known: no act until its lease is renewed."""


class HandlerPaused(SchedulerError):
    """The handler is paused; confirm to run it all the same."""


class LeaseGone(SchedulerError):
    """The row of scheduler_masterlease is gone: nobody can be master. Bring it back with id 1 and a term no lower than the newest tick's."""


def connection_lost(problem: Exception) -> bool:
    """Whether the connection, or the database, went: nobody's own fault."""
    if not isinstance(problem, OperationalError | InterfaceError | InternalError):
        return False
    if unreadable(problem):
        return False
    state = getattr(problem.__cause__, "sqlstate", None)
    return state is None or state.startswith(LOST)


def unreadable(problem: Exception) -> bool:
    """Whether SQLite cannot read a statement: it has the class of a lost connection for that."""
    code = getattr(problem.__cause__, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_ERROR
