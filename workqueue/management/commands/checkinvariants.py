"""checkinvariants: ask the database whether the rules of the engine hold. Changes nothing."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand

from workqueue import invariants

MOST_HOURS = 87_600  # ten years


class Command(BaseCommand):
    """Exit code 0: all hold. 1: the broken rows are printed."""

    help = (
        "Checks the invariants of the engine: one tick per slot, one run per attempt, nothing lost, "
        "one master at a time, counts and policies as they must be. Reads only. Exit code 1 with the "
        "broken rows. Examples: manage.py checkinvariants; manage.py checkinvariants --hours 1 --json"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--hours and --json."""
        parser.add_argument(
            "--hours",
            type=_hours,
            default=24,
            help=f"how far back the ledger is read, more than 0 and at most {MOST_HOURS:,}; less than the shortest retention (24)",
        )
        parser.add_argument("--json", action="store_true", help="one object, to stdout")

    def handle(self, *_: Any, hours: float, json: bool, **__: Any) -> None:
        """Ask, print, exit."""
        broken = invariants.check(hours=hours)
        if json:
            self.stdout.write(invariants.as_json(broken))
        else:
            self._print(broken)
        if broken:
            raise SystemExit(1)

    def _print(self, broken: list[invariants.Broken]) -> None:
        for one in broken:
            self.stdout.write(f"{one.rule.id} does not hold: {one.rule.sentence}")
            for row in one.rows:
                self.stdout.write("  " + "  ".join(f"{k}={v}" for k, v in row.items()))
            if one.more:
                self.stdout.write("  and more")
        count = len(invariants.applicable())
        self.stdout.write(f"{count - len(broken)} of {count} rules hold.")


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= MOST_HOURS:
        raise ArgumentTypeError(
            f"{text!r} is no number of hours more than 0 and at most {MOST_HOURS:,}"
        )
    return hours
