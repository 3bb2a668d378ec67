"""showconfig: every environment variable, its value, and where the value came from."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from project.configuration import Given, refuse
from project.document import document
from project.environment import SECTIONS
from project.modes import MODES
from project.preflight import check_machine
from project.upgrade import Refused

HIDDEN = "********"


class Command(BaseCommand):
    """Prints the registry as this process sees it."""

    help = (
        "Prints every environment variable with its value, source, unit and meaning; secrets are masked. "
        "Exit code 78: `start` would refuse one of them, and this says the same sentence. "
        "Examples: manage.py showconfig; manage.py showconfig --json | jq .PORT.value"
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--json and --markdown."""
        parser.add_argument("--json", action="store_true", help="one object, by name")
        parser.add_argument(
            "--markdown",
            action="store_true",
            help="docs/settings.md, without any value",
        )

    def handle(self, *_: Any, json: bool, markdown: bool, **__: Any) -> None:
        """Print, then say what this machine does not give."""
        if markdown:
            self.stdout.write(document(), ending="")
            return
        if json:
            self.stdout.write(_as_json())
        else:
            self._print()
        try:
            check_machine(MODES[settings.FALCON_MODE])
        except Refused as refused:
            refuse((str(refused),))

    def _print(self) -> None:
        for section, variables in SECTIONS.items():
            self.stdout.write(f"{section}")
            for variable in variables:
                given: Given = settings.CONFIGURATION[variable.name]
                source = (
                    ""
                    if given.source in ("default", "unset")
                    else f"  [{given.source}]"
                )
                self.stdout.write(f"  {variable.name}={_shown(given)}{source}")
            self.stdout.write("")


def _shown(given: Given) -> str:
    return HIDDEN if given.variable.secret and given.text else given.text


def _as_json() -> str:
    entries = {
        name: {
            "value": _shown(given) or None,
            "source": given.source,
            "unit": given.variable.unit or None,
            "default": given.variable.default_in(settings.DJANGO_ENV) or None,
            "secret": given.variable.secret,
            "modes": given.variable.modes,
            "purpose": given.variable.purpose,
        }
        for name, given in settings.CONFIGURATION.items()
    }
    return json.dumps(entries, indent=2)
