"""command_line: run one of manage.py's commands; what stops it from outside is one line.

A database that is away or not migrated, a reader that has hung up, Ctrl-C: none of
them is a fault of the command, and none may look like its own exit code 1.
"""

import os
import sys
from collections.abc import Sequence

from django.core.management import execute_from_command_line
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
)

from project.configuration import EXIT_CONFIGURATION
from project.upgrade import EXIT_UNAVAILABLE, refusal, said_by
from scheduler.exceptions import unreadable
from workqueue import schema

INTERRUPTED = 130  # exit codes, as shells have them: 128 and the signal's number
HUNG_UP = 141


def run(argv: Sequence[str]) -> None:
    """Run the command that is named. With --traceback a problem is shown as Python has it."""
    try:
        execute_from_command_line(list(argv))
        sys.stdout.flush()
    except BrokenPipeError:  # `... | head` has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(HUNG_UP) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except (DatabaseError, InterfaceError) as problem:
        said, code = _explained(problem)
        if not said or "--traceback" in argv:
            raise
        sys.stderr.write(f"{said}\n")
        raise SystemExit(code) from None


def _explained(problem: Exception) -> tuple[str, int]:
    """One line and the exit code; "": the database and its schema are in order, we are not."""
    try:
        connection.close()
        found = schema.look()
    except DatabaseError as away:
        refused = refusal(away)
        return str(refused), refused.exit_code
    if not found.ready:
        text = (
            f"the schema was applied in part: {found.partial[0]}; `manage.py start` says how to recover"
            if found.partial
            else f"the database is not migrated for this release ({found.missing[0]} is missing): `manage.py start` does it, or `manage.py migrate`"
        )
        return text, EXIT_CONFIGURATION
    broke_off = isinstance(problem, OperationalError | InterfaceError)
    if broke_off and not unreadable(problem):
        text = f"the database of DATABASE_URL broke off: {said_by(problem)}. Try again."
        return text, EXIT_UNAVAILABLE
    return "", 0
