"""showconfig tells everything but secrets; docs/settings.md is what it writes."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from project import configuration
from project.environment import VARIABLES
from tests.processes import ROOT

pytestmark = pytest.mark.once


@pytest.fixture
def shown(settings, tmp_path) -> Callable[..., str]:
    """What the command prints in an environment."""

    def show(*options: str, **environment: str) -> str:
        given = configuration.read(environment, dotenv=tmp_path / ".env")
        assert given.problems == ()
        settings.CONFIGURATION = given
        out = StringIO()
        call_command("showconfig", *options, stdout=out)
        return out.getvalue()

    return show


def test_every_variable_is_shown_with_its_source(shown):
    found = json.loads(shown("--json", PORT="81"))
    assert set(found) == {v.name for v in VARIABLES}
    assert (found["PORT"]["value"], found["PORT"]["source"]) == ("81", "environment")
    assert found["BIND"]["source"] == "default"
    assert found["EMAIL_URL"]["value"] is None


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_secrets_are_masked_in_both_forms(shown, options):
    text = shown(
        *options,
        SECRET_KEY="s3cr3t-s3cr3t",
        EMAIL_URL="smtp://me:s3cr3t@mail",
        DATABASE_URL="postgresql://a:s3cr3t@b/c",
    )
    assert "s3cr3t" not in text
    assert text.count("********") == 3


def test_people_get_a_section_per_subject(shown):
    text = shown(DJANGO_ENV="test")
    assert "Database\n" in text
    assert "  DJANGO_ENV=test  [environment]" in text


def test_the_document_is_what_the_registries_say(shown, settings):
    settings.KEEP_ALIVE = timedelta(seconds=25)  # the bounds of one key follow it
    written = (ROOT / "docs" / "settings.md").read_text()
    assert shown("--markdown") == written, (
        "docs/settings.md is old: `make docs` writes it"
    )
