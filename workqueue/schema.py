"""schema: is the database's schema the one that this release needs?

Called by runworker and runscheduler before their loop (`wait`), by start before it
migrates, and by the readiness probe (`look`). Only start migrates; the others wait
and say what they wait for.
"""

import logging
import threading
from dataclasses import dataclass

from django.db import DatabaseError, connection
from django.db.migrations import Migration
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import CreateModel

logger = logging.getLogger(__name__)

LOOK_EVERY = 1.0  # seconds
SAY_EVERY = 60  # looks; what is waited for is said again


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The difference between the database and this release, migrations as 'app.name'."""

    missing: tuple[str, ...]  # not applied yet
    newer: tuple[str, ...]  # applied, and unknown to this release
    partial: tuple[str, ...]  # sentences: applied in part, or out of order

    @property
    def ready(self) -> bool:
        """Whether everything that this release needs is there."""
        return not (self.missing or self.partial)


def look() -> Schema:
    """Compare. Raises DatabaseError when the database does not answer."""
    loader = MigrationLoader(connection)
    applied = set(loader.applied_migrations)
    known = set(loader.disk_migrations)
    ours = loader.migrated_apps
    missing = [key for key in _in_order(loader) if key not in applied]
    return Schema(
        missing=tuple(map(".".join, missing)),
        newer=tuple(sorted(".".join(key) for key in applied - known if key[0] in ours)),
        partial=(*_begun(loader, missing), *_out_of_order(loader)),
    )


def wait(*, stop: threading.Event) -> bool:
    """Return True once the schema is ready; False: told to stop before."""
    said = ""
    looks = 0
    while not stop.is_set():
        reason = _reason()
        if not reason:
            if said:
                logger.info("the schema is ready: going on")
            return True
        if reason != said or looks % SAY_EVERY == 0:
            logger.warning("waiting for the database: %s", reason)
        said, looks = reason, looks + 1
        stop.wait(LOOK_EVERY)
    return False


def _reason() -> str:
    try:
        schema = look()
    except DatabaseError as problem:
        return f"it does not answer ({str(problem).strip().splitlines()[0]})"
    finally:
        connection.close()
    if schema.partial:
        return f"{schema.partial[0]}; the log of `start` in mode all or api says how to recover"
    if schema.missing:
        count = len(schema.missing)
        return f"{count} migrations are not applied yet, the first is {schema.missing[0]}; `start` in mode all or api applies them"
    return ""


def _in_order(loader: MigrationLoader) -> list[tuple[str, str]]:
    order: dict[tuple[str, str], None] = {}
    for leaf in sorted(loader.graph.leaf_nodes()):
        order.update(dict.fromkeys(loader.graph.forwards_plan(leaf)))
    return list(order)


def _begun(loader: MigrationLoader, missing: list[tuple[str, str]]) -> list[str]:
    """Migrations that are not recorded as applied, yet whose tables exist."""
    tables = set(connection.introspection.table_names()) if missing else set()
    return [
        f"{'.'.join(key)} is not recorded as applied, yet its table {table} exists"
        for key in missing
        for table in _tables_of(loader.graph.nodes[key])
        if table in tables
    ]


def _tables_of(migration: Migration) -> list[str]:
    names = []
    for operation in migration.operations:
        if isinstance(operation, CreateModel) and operation.options.get(
            "managed", True
        ):
            default = f"{migration.app_label}_{operation.name.lower()}"
            names.append(str(operation.options.get("db_table", default)))
    return names


def _out_of_order(loader: MigrationLoader) -> list[str]:
    """Applied migrations of which one that comes before is not."""
    try:
        loader.check_consistent_history(connection)
    except InconsistentMigrationHistory as problem:
        return [str(problem).rstrip(".")]
    return []
