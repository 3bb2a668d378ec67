import pytest

from scheduler.handlers.archival.archivable import types
from scheduler.handlers.archival.defaults import make_default_policies
from scheduler.handlers.archival.models import ArchivalPolicy

pytestmark = pytest.mark.django_db


def test_every_type_has_a_default_after_the_bootstrap() -> None:
    told = make_default_policies()

    assert told == f"{len(types())} default archival policies made"
    found = ArchivalPolicy.objects.defaults().values_list("record_type", flat=True)
    assert set(found) == set(types())


def test_a_second_bootstrap_changes_nothing_and_says_nothing() -> None:
    make_default_policies()
    ArchivalPolicy.objects.filter(record_type="runs").update(
        keep_days=7, is_enabled=False
    )

    told = make_default_policies()

    changed = ArchivalPolicy.objects.get(record_type="runs")
    assert told == ""
    assert (changed.keep_days, changed.is_enabled) == (7, False)
    assert ArchivalPolicy.objects.count() == len(types())
