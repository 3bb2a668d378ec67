from typing import Any

from django.db import migrations


def make_lease_row(apps: Any, schema_editor: Any) -> None:
    """The one row that elections compete for."""
    lease = apps.get_model("scheduler", "MasterLease").objects.using(
        schema_editor.connection.alias
    )
    lease.get_or_create(id=1)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0001_initial")]
    operations = [migrations.RunPython(make_lease_row, migrations.RunPython.noop)]
