"""gated: a handler whose probe waits as long as the file named in GATE is there."""

import os
import time
from datetime import datetime
from pathlib import Path

from django.db.models import QuerySet

from workqueue.context import Context, Outcome
from workqueue.models import Tenant


def due(now: datetime) -> QuerySet:
    gate = Path(os.environ.get("GATE", "/nowhere"))
    while gate.exists():
        time.sleep(0.02)
    return Tenant.objects.values_list("id", flat=True)


def run(ctx: Context) -> Outcome:
    return Outcome()
