from typing import Any

from django.db import migrations


def make_platform_tenant(apps: Any, schema_editor: Any) -> None:
    """The tenant that work of platform scope stands for."""
    tenants = apps.get_model("workqueue", "Tenant").objects.using(
        schema_editor.connection.alias
    )
    tenants.get_or_create(
        slug="platform", defaults={"name": "Platform", "is_platform": True}
    )


class Migration(migrations.Migration):
    dependencies = [("workqueue", "0001_initial")]
    operations = [migrations.RunPython(make_platform_tenant, migrations.RunPython.noop)]
