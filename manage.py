#!/usr/bin/env python
"""Millrace's command line: `manage.py help` lists what there is."""

import os
import sys


def main() -> None:
    """Run the command named in the arguments."""
    if sys.version_info < (3, 13):  # noqa: UP036 - who has an older one meets this first
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(
            f"millrace: Python 3.13 or newer is needed, this is {found}; `uv run manage.py` brings its own\n"
        )
        raise SystemExit(78)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from project import command_line

    command_line.run(sys.argv)


if __name__ == "__main__":
    main()
