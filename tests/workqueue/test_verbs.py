"""The verbs of an operator, and the reason that each of them asks for."""

import pytest

from workqueue import verbs
from workqueue.models import WorkItem
from workqueue.verbs import REPEAT, VERBS

pytestmark = pytest.mark.once


def test_every_verb_has_a_permission_of_items():
    known = {f"workqueue.{codename}" for codename, _ in WorkItem._meta.permissions}
    assert {verb.permission for verb in (*VERBS.values(), REPEAT)} <= known


@pytest.mark.parametrize("verb", [*VERBS.values(), REPEAT], ids=lambda verb: verb.name)
def test_a_verb_names_what_it_is_done_to(verb):
    for sentence in (verb.question, verb.button):
        assert "{what}" in sentence
    assert "{count}" in verb.done


@pytest.mark.parametrize(
    ("why", "said"),
    [("", "Say why"), ("x" * 501, "at most 500"), ("CHG-1", None)],
)
def test_a_reason_is_asked_for_and_bounded(why, said):
    problem = verbs.reason_problem(why)
    assert said in problem if said else problem == ""
