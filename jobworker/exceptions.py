"""What can go wrong with a long job. The docstring is the message."""

from collections.abc import Mapping


class JobError(Exception):
    """The job worker could not do what was asked."""

    def __init__(self, message: str = "") -> None:
        """Take the class's docstring where no message is given."""
        super().__init__(message or (self.__doc__ or "").strip())


class UnknownType(JobError):
    """There is no such job type."""


class InvalidParams(JobError):
    """The parameters of a job were refused."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        """`problems`: parameter -> the sentence to show beside it."""
        self.problems = dict(problems)
        super().__init__(" ".join(f"{name}: {text}" for name, text in problems.items()))


class Locked(JobError):
    """Another job that is not finished holds the same thing."""


class CannotAdopt(JobError):
    """There is nothing outside that could be followed."""


class JobFailed(JobError):
    """The job did not succeed. Raised by a job's `run`; the message is what operators read."""

    def __init__(self, message: str = "", *, code: str = "failed") -> None:
        """`code`: one word for programs, at most 40 characters."""
        super().__init__(message)
        self.code = code


class Stopped(JobError):
    """The job was told to stop, and did. The message says what was stopped."""
