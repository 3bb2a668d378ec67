"""archive: verify the archive's files, print them, or put their rows back."""

import getpass
import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audit import clock
from scheduler.handlers.archival import restore, store
from scheduler.handlers.archival.exceptions import ArchiveError, NotAnArchive
from scheduler.handlers.archival.models import ArchiveFile
from scheduler.handlers.archival.verify import unregistered, verify

NOT_FOUND = 3
EXAMPLES = """
examples:
  manage.py archive verify                      every file: 0 all whole, 1 not all, 3 there is none
  manage.py archive verify acme/runs/2026/08/runs-….jsonl.gz --json
  manage.py archive restore FILE --print | jq .summary
  manage.py archive restore FILE --into-table --why "asked for by the auditors"

FILE is a path, absolute or below the archive's folder, or the number of an archive file.
exit codes: 0 done, 1 a file is damaged or missing, 2 usage, 3 no such file
"""


class Command(BaseCommand):
    """The way back from the archive."""

    help = "Verify archive files, print them, or put their rows back into the table."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Two verbs."""
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EXAMPLES
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="verify|restore"
        )
        check = verbs.add_parser(
            "verify", help="read files again and compare them with what was written"
        )
        check.add_argument(
            "files", nargs="*", metavar="FILE", help="none: all that are registered"
        )
        check.add_argument(
            "--json", action="store_true", help="one JSON object on stdout"
        )
        back = verbs.add_parser("restore", help="print a file, or put its rows back")
        back.add_argument("file", metavar="FILE")
        how = back.add_mutually_exclusive_group()
        how.add_argument(
            "--print", action="store_true", help="its lines on stdout (the default)"
        )
        how.add_argument(
            "--into-table", action="store_true", help="its rows into their table"
        )
        back.add_argument("--why", default="", help="kept with the change")
        back.add_argument(
            "--json",
            action="store_true",
            help="with --into-table: one JSON object on stdout",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Do the verb; an ArchiveError is its exit code."""
        try:
            if options["verb"] == "verify":
                self._verify(options["files"], as_json=options["json"])
            elif options["into_table"]:
                self._restore(
                    options["file"], why=options["why"], as_json=options["json"]
                )
            else:
                for line in restore.lines(store.name_of(options["file"])):
                    self.stdout.write(line.decode(), ending="")
        except NotAnArchive as problem:
            raise CommandError(str(problem), returncode=NOT_FOUND) from None
        except ArchiveError as problem:
            raise CommandError(str(problem), returncode=1) from None

    def _verify(self, names: list[str], *, as_json: bool) -> None:
        files = [
            restore.registered(name) for name in names
        ] or ArchiveFile.objects.present().order_by("id").iterator()
        verdicts = [verify(file, now=clock.now()) for file in files]
        left = [] if names else list(unregistered())
        if as_json:
            told = {
                "files": [asdict(verdict) for verdict in verdicts],
                "unregistered": left,
            }
            self.stdout.write(json.dumps(told, indent=1))
        else:
            for verdict in verdicts:
                self.stdout.write(f"{verdict.word:<10} {verdict.path}: {verdict.text}")
            for name in left:
                self.stderr.write(
                    f"{name}: no row speaks of it; its rows are in the table or in a later file"
                )
        if not verdicts:
            raise CommandError(
                f"there is no archive file yet in {store.place()}", returncode=NOT_FOUND
            )
        if bad := sum(verdict.bad for verdict in verdicts):
            raise CommandError(
                f"{bad} of {len(verdicts)} files are damaged or missing", returncode=1
            )

    def _restore(self, name: str, *, why: str, as_json: bool) -> None:
        done = restore.into_table(
            restore.registered(name),
            who=getpass.getuser(),
            origin="command",
            why=why,
            now=clock.now(),
        )
        if as_json:
            self.stdout.write(json.dumps(asdict(done)))
            return
        self.stdout.write(
            f"{done.inserted} of {done.rows} rows of {done.path} are back in the table, the others were there.\n"
            "The next archival run takes them out again: raise keep_days of the policy first to keep them."
        )
