"""The first partitions of runs and lines: this month and the next three."""

from typing import Any

from django.db import migrations

from audit import clock, partitions


def make(apps: Any, schema_editor: Any) -> None:
    partitions.ensure_in_migration(now=clock.now(), using=schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
