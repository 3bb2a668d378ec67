"""The registry is whole: each variable explains itself and its default is allowed."""

import pytest

from project.environment import EVERYWHERE, VARIABLES, Variable, unknown
from project.modes import MODES
from workqueue import registry

pytestmark = pytest.mark.once


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda v: v.name)
def test_a_variable_explains_itself(variable: Variable):
    assert variable.purpose.endswith(".")
    for environment in ("development", "production"):
        if default := variable.default_in(environment):
            variable.parse(default)
        else:
            # Optional ones say what happens without them.
            assert (
                variable.unset or variable.secret or variable.kind in ("list", "folder")
            )


def test_names_are_unique():
    assert len({v.name for v in VARIABLES}) == len(VARIABLES)


def test_every_mode_is_built():
    assert set(EVERYWHERE) == set(MODES)


def test_an_archival_run_ends_by_itself_before_its_time_limit_ends_it():
    [variable] = (v for v in VARIABLES if v.name == "ARCHIVE_MAX_SECONDS")
    limit = registry.row("archival.apply_policies").time_limit.total_seconds()
    assert variable.high is not None
    assert limit - variable.high >= 300  # for the file in hand
    assert f"After {limit:.0f} it would fail" in variable.purpose


def test_a_misspelt_name_of_ours_is_found():
    names = [
        "FALCON_MOD",
        "FALCON_MODE",
        "DATABASE_URL_FILE",
        "PATH",
        "WORKER_CONCURENCY",
    ]
    assert unknown(names) == ["FALCON_MOD", "WORKER_CONCURENCY"]
