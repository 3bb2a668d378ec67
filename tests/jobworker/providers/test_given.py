"""Parameters that all Terraform types share."""

import pytest

from jobworker.exceptions import InvalidParams
from jobworker.providers import given

pytestmark = pytest.mark.once


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidParams) as refusal:
        given.check("cluster", module="x", variables="7", taken=())

    assert set(refusal.value.problems) == {"module", "variables"}


def test_no_variables_are_none() -> None:
    assert given.parsed("") == {}
    assert given.parsed('{"delay": 5}') == {"delay": 5}
