import pytest
from django.apps import apps

from scheduler.handlers.archival.archivable import TYPES, title, type_of, types
from scheduler.handlers.archival.exceptions import ArchiveError
from scheduler.handlers.archival.models import ArchivalPolicy


def test_every_dotted_path_leads_to_a_type_with_a_table_and_its_columns() -> None:
    assert len(types()) == len(TYPES)
    for rows in types().values():
        columns = {field.attname for field in apps.get_model(rows.model)._meta.fields}
        assert {rows.time, "tenant_id"} <= columns
        assert rows.slug is None or rows.slug in columns


def test_names_fit_the_columns_that_hold_them() -> None:
    limit = ArchivalPolicy._meta.get_field("record_type").max_length
    assert all(len(name) <= (limit or 0) for name in types())


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ArchiveError, match="no record type 'toasts'; there are runs, events"
    ):
        type_of("toasts")


def test_a_type_that_is_known_no_more_keeps_its_name() -> None:
    assert title("runs") == "Runs with their transcripts"
    assert title("toasts") == "toasts"
