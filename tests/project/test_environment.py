"""The registry is whole: each variable explains itself and its default is allowed."""

import pytest

from project.environment import EVERYWHERE, VARIABLES, Variable, unknown
from project.modes import MODES

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


def test_a_misspelt_name_of_ours_is_found():
    names = [
        "FALCON_MOD",
        "FALCON_MODE",
        "DATABASE_URL_FILE",
        "PATH",
        "WORKER_CONCURENCY",
    ]
    assert unknown(names) == ["FALCON_MOD", "WORKER_CONCURENCY"]
