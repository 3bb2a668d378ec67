"""identity: the random id by which reports tell this installation from others.

Kept as the one version of the setting "Instance", so that it belongs to the database:
it survives every process and host, and a restored copy of the database still has it.
"""

from uuid import UUID, uuid4

from audit.clock import DatabaseNow
from workqueue.models import Setting

NAME = "Instance"
VERSION = 1


def instance_id() -> UUID:
    """The id; made at the first call. Of two first calls, one makes it."""
    if (known := _known()) is None:
        Setting.objects.bulk_create(
            [
                Setting(
                    name=NAME,
                    version=VERSION,
                    values={"instance_id": str(uuid4())},
                    at=DatabaseNow(),
                    who="Millrace",
                    origin="engine",
                    why="First report of this installation",
                )
            ],
            ignore_conflicts=True,
        )
        known = _known()
    return UUID(known)


def _known() -> str | None:
    found = Setting.objects.filter(name=NAME, version=VERSION).first()
    return found.values["instance_id"] if found else None
