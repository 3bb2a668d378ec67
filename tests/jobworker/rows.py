"""Rows that tests of jobs need."""

import json
from typing import Any

from cryptography.fernet import Fernet

from audit import clock
from jobworker.models import Deployment
from jobworker.providers import state


def deployment(ctx: Any = None, **values: Any) -> Deployment:
    """An active cluster, of the job's tenant where one is given."""
    now = clock.now()
    if ctx is not None:
        values = {"tenant_id": ctx.tenant_id, "tenant_slug": ctx.tenant, **values}
    elif "tenant" in values:
        values = {"tenant_slug": values["tenant"].slug, **values}
    defaults: dict[str, Any] = {
        "kind": "cluster",
        "name": "demo",
        "module": "offline",
        "status": Deployment.Status.ACTIVE,
        "created_at": now,
        "created_by": "operator",
        "changed_at": now,
    }
    return Deployment.objects.create(**{**defaults, **values})


def lose_key(settings: Any) -> None:
    """What is encrypted by now opens no more: FIELD_KEY was changed without keeping the old one."""
    for each in Deployment.objects.all():
        each.secret_variables = each.secret_outputs = '{"password": "hunter2-hunter2"}'
        each.save()
        document = {"serial": 1, "resources": []}
        body = json.dumps(document).encode()
        state.store(each.pk, body=body, document=document, job_id=clock.uuid7())
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
