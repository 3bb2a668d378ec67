"""Programs that are missing, and what that means for tiers."""

from pathlib import Path
from typing import Any

import pytest

from jobworker import installed, registry
from jobworker.caps import resolve

pytestmark = pytest.mark.once


def test_what_is_missing_is_named_with_the_types_that_need_it(job_types: None) -> None:
    assert installed.lacks(registry.rows()) == {"no-such-program": ["act_lacking"]}


def test_a_job_root_that_cannot_be_written_is_as_if_a_program_were_missing(
    job_types: None, settings: Any
) -> None:
    settings.JOB_ROOT = Path("/proc/nope")
    row = registry.row("act_lacking")
    assert installed.missing(row) == ["no-such-program", "JOB_ROOT"]
    assert installed.missing(registry.row("act_light")) == []
    text = installed.sentence("JOB_ROOT", where="app-2", tier="heavy")
    assert text == (
        "JOB_ROOT /proc/nope is no folder that app-2 can write; set it to one or set heavy to 0"
    )


def test_a_tier_is_lacking_only_where_none_of_its_types_can_run(
    job_types: None,
) -> None:
    caps = resolve({})[0]
    assert installed.lacking(registry.rows(), caps, where="app-2") == []
    only = [registry.row("act_lacking")]
    [one] = installed.lacking(only, caps, where="app-2")
    assert (one.what, one.asked, one.used) == ("heavy", 2, 0)
    assert (
        one.why
        == "no-such-program is not on PATH of app-2; install it or set heavy to 0"
    )
