"""showconfig tells everything but secrets; docs/settings.md is what it writes."""

import json
import os
from io import StringIO

import pytest
from django.core.management import call_command

from project.environment import VARIABLES
from tests.processes import ROOT, run_manage

pytestmark = pytest.mark.once


def clean(**more: str) -> dict[str, str]:
    ours = {v.name for v in VARIABLES}
    return {
        **{k: v for k, v in os.environ.items() if k not in ours},
        "DJANGO_ENV": "test",
        **more,
    }


def test_every_variable_is_shown_with_its_source():
    found = json.loads(
        run_manage(["showconfig", "--json"], env=clean(PORT="81"), timeout=60).stdout
    )
    assert set(found) == {v.name for v in VARIABLES}
    assert (found["PORT"]["value"], found["PORT"]["source"]) == ("81", "environment")
    assert found["BIND"]["source"] == "default"
    assert found["EMAIL_URL"]["value"] is None


def test_secrets_are_masked_in_both_forms():
    env = clean(
        SECRET_KEY="s3cr3t-s3cr3t",
        EMAIL_URL="smtp://me:s3cr3t@mail",
        DATABASE_URL="postgresql://a:s3cr3t@b/c",
    )
    for form in ([], ["--json"]):
        result = run_manage(["showconfig", *form], env=env, timeout=60)
        assert result.returncode == 0, result.stderr
        assert "s3cr3t" not in result.stdout
        assert "********" in result.stdout


def test_people_get_a_section_per_subject():
    out = StringIO()
    call_command("showconfig", stdout=out)
    assert "Database\n" in out.getvalue()
    assert "  DJANGO_ENV=test  [environment]" in out.getvalue()


def test_the_document_is_what_the_registries_say():
    written = run_manage(["showconfig", "--markdown"], env=clean(), timeout=60).stdout
    assert written == (ROOT / "docs" / "settings.md").read_text(), (
        "docs/settings.md is old: `make docs` writes it"
    )
