"""Isolation by construction: every table of a domain belongs to a tenant."""

import pytest
from django.apps import apps
from django.conf import settings
from django.db import models

pytestmark = pytest.mark.once

# Tables of the platform itself, each with its reason.
PLATFORM_WIDE: dict[str, str] = {}


def domain_models() -> list[type[models.Model]]:
    packages = tuple(entry.split(".apps.")[0] for entry in settings.DOMAIN_APPS)
    return (
        [m for m in apps.get_models() if m.__module__.startswith(packages)]
        if packages
        else []
    )


def belongs(
    model: type[models.Model], seen: frozenset[type[models.Model]] = frozenset()
) -> bool:
    """Whether it has a tenant, or a row that it must belong to has one."""
    for field in model._meta.get_fields():
        if field.name in ("tenant", "tenant_id"):
            return True
    parents = [
        field.related_model
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey)
        and not field.null
        and field.related_model not in seen
    ]
    return any(belongs(parent, seen | {model}) for parent in parents)


def test_every_table_of_a_domain_belongs_to_a_tenant():
    found = [model._meta.label for model in domain_models()]
    assert found
    homeless = [m._meta.label for m in domain_models() if not belongs(m)]
    assert set(homeless) == set(PLATFORM_WIDE)
