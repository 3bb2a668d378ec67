"""A database that is away for a moment."""

from typing import Any

import pytest
from django.db import OperationalError

from audit import clock
from jobworker.providers import patient

pytestmark = pytest.mark.once


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "LOOK_AGAIN", 0.001)


class Away:
    """Fails so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, *_: Any) -> str:
        self.left -= 1
        if self.left >= 0:
            raise OperationalError("the database is being restarted")
        return "done"


def test_what_the_database_interrupts_is_done_again(quick: None) -> None:
    assert patient.patiently(Away(3), go_on=lambda: True) == "done"


def test_nobody_waits_who_is_to_end(quick: None, start: Any) -> None:
    ctx = start()
    ctx.stop("drain", kill_at=clock.steady() - 1)

    with pytest.raises(OperationalError):
        patient.patient(Away(3))(ctx)


def test_other_problems_are_not_tried_again(quick: None) -> None:
    tried = []

    def wrong() -> None:
        tried.append(1)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        patient.patiently(wrong, go_on=lambda: True)

    assert tried == [1]
