"""What can go wrong in the queue. The docstring is the message."""

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError


class WorkqueueError(Exception):
    """The queue could not do what was asked."""

    def __init__(self, message: str = "") -> None:
        """Take the class's docstring where no message is given."""
        super().__init__(message or (self.__doc__ or "").strip())


def may_work_later(problem: Exception) -> bool:
    """Whether the database is away, busy or behind. False: the same values are refused again."""
    away = isinstance(problem, DatabaseError | InterfaceError)
    return away and not isinstance(problem, DataError | IntegrityError)


class ClaimLost(WorkqueueError):
    """This attempt's claim is no longer its own: its result will not count."""


class UnknownHandler(WorkqueueError):
    """No row of the timetable has this key."""


class InvalidValues(WorkqueueError):
    """A setting was given values that it refuses."""

    def __init__(self, problems: dict[str, str]) -> None:
        """`problems`: key -> the sentence to show beside it."""
        self.problems = problems
        super().__init__(" ".join(f"{key}: {text}" for key, text in problems.items()))


class VersionConflict(WorkqueueError):
    """Somebody saved a newer version meanwhile. Nothing of theirs was overwritten."""


class StillNeeded(WorkqueueError):
    """The tenant cannot be removed yet: something of it would be left that nobody could end."""


class PlatformStays(WorkqueueError):
    """The platform tenant stands for work of the platform itself and cannot be removed."""
