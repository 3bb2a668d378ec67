#!/usr/bin/env python
"""Millrace's command line: `manage.py help` lists what there is."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run the command named in the arguments."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
