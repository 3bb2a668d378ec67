"""Files of a list: every row once, as it is read, and never silently too short."""

import json

import pytest
from django.http import QueryDict

from audit import export, keyset
from audit.filters import RunFilters
from audit.models import Run
from tests import factories, screens

pytestmark = pytest.mark.django_db


def asked(query: str = "") -> RunFilters:
    return RunFilters(QueryDict(query), queryset=Run.objects.all())


def test_a_search_takes_as_many_stretches_as_it_needs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        export, "SIFT_MS", -1000
    )  # each ends at the first row that fails
    acme = factories.tenant("acme")
    for number in range(6):
        screens.run(acme, outcome="failed", error="odd" if number % 2 else "even")
    found = list(export.rows(export.RUNS, asked("text=odd")))
    assert len(found) == len({row.pk for row in found}) == 3


def test_a_search_that_the_database_ended_breaks_the_file_off(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(keyset, "page", lambda *_, **__: keyset.Page(slow=True))
    with pytest.raises(export.BrokenOff):
        list(export.rows(export.RUNS, asked()))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "plain", 'a,b\n"c'])
def test_a_cell_is_text_to_a_spreadsheet_and_json_is_as_it_was(text: str):
    screens.run(factories.tenant("acme"), summary=text)
    [line] = export.response(export.RUNS, asked(), form="jsonl").streaming_content
    assert json.loads(line)["summary"] == text
    cell = export._cell(text)
    assert cell == (f"'{text}" if text[0] in "=+-@\t" else text)
    assert export._cell(-1) == -1
