"""What the tests of the archive share: a folder, a context, rows of any age."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from audit import clock, partitions
from audit.models import Event, Line, Run
from scheduler.handlers.archival.models import ArchivalPolicy
from tests import factories
from workqueue.context import Context
from workqueue.models import Tenant

NOW = datetime(2026, 11, 29, 23, 0, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    """The archive's folder."""
    settings.ARCHIVE_ROOT = tmp_path / "archive"
    settings.STORAGES = {
        **settings.STORAGES,
        "archive": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(settings.ARCHIVE_ROOT), "base_url": None},
        },
    }
    return settings.ARCHIVE_ROOT


@pytest.fixture
def acme(db: None) -> Tenant:
    return factories.tenant("acme")


@pytest.fixture
def ctx(acme: Tenant) -> Callable[..., Context]:
    """The attempt of one tenant's item: ctx(), ctx(of=..., stopping=...)."""

    def make(of: Tenant | None = None, **values: Any) -> Context:
        tenant = of or acme
        return Context(
            **{
                "key": "archival.apply_policies",
                "tenant_id": tenant.pk,
                "tenant": tenant.slug,
                "dedup_key": "",
                "now": NOW,
                "slot": NOW,
                "trigger": "slot",
                "attempt": 1,
                "claim_id": clock.uuid7(),
                "deadline": NOW + timedelta(hours=1),
                "stopping": lambda: False,
                "progress": lambda _: None,
                **values,
            }
        )

    return make


@pytest.fixture
def policy(acme: Tenant) -> Callable[..., ArchivalPolicy]:
    """A policy of acme; 30 days unless said otherwise."""

    def make(record_type: str = "events", **values: Any) -> ArchivalPolicy:
        fields = {"tenant": acme, "keep_days": 30, **values}
        return ArchivalPolicy.objects.create(record_type=record_type, **fields)

    return make


@pytest.fixture
def event(acme: Tenant) -> Callable[..., Event]:
    """An event of acme, 65 days old unless said otherwise."""

    def make(days: float = 65, **values: Any) -> Event:
        fields = {
            "tenant_id": acme.pk,
            "tenant": acme.slug,
            "type": "scan.completed",
            "subject": "scan:1",
            "data": {},
            "occurred_at": NOW - timedelta(days=days),
        }
        return Event.objects.create(**{**fields, **values})

    return make


@pytest.fixture
def ran(acme: Tenant) -> Callable[..., Run]:
    """A finished run of acme, 65 days old unless said otherwise, with so many lines."""

    def make(days: float = 65, lines: int = 0, **values: Any) -> Run:
        at = NOW - timedelta(days=days)
        fields = {
            "id": clock.uuid7(at),
            "tenant_id": acme.pk,
            "tenant": acme.slug,
            "handler": "notifications.deliver",
            "trigger": "slot",
            "enqueued_at": at,
            "finished_at": at,
            "outcome": "succeeded",
            "seen": 1,
            "finish_id": clock.uuid7(at),
        }
        for table in partitions.PARENTS:
            partitions.make_room(table, [at])
        row = Run.objects.create(**{**fields, **values})
        Line.objects.bulk_create(
            Line(claim_id=row.id, seq=n, at=at, level=20, text=f"line {n}")
            for n in range(1, lines + 1)
        )
        return row

    return make
