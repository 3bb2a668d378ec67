"""checkinvariants: ask the database whether the rules of the engine hold. Changes nothing."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from workqueue import invariants


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
            type=float,
            default=24,
            help="how far back the ledger is read; less than the shortest retention (24)",
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
