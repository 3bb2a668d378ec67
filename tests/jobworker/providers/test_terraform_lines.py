"""What Terraform says, against recordings of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobworker.providers.terraform_lines import Said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def said(start: Any, shared: Path) -> Any:
    def read(name: str, step: str = "apply") -> Said:
        found = Said(ctx=start(), step=step)
        for line in (shared / "data" / "terraform" / name).read_text().splitlines():
            found.line(line)
        return found

    return read


def test_an_apply_tells_its_progress_its_output_and_its_counts(said: Any) -> None:
    found = said("apply_ok.jsonl")

    assert (found.planned, found.finished, found.errors) == (3, 3, [])
    assert (found.added, found.changed, found.destroyed) == (3, 0, 0)
    assert found.ctx.sign.progress == 99
    names = [phase["name"] for phase in found.ctx.sign.phases]
    assert names[0] == "apply, 0 of 3 resources"
    assert names[-1] == "apply, 3 of 3 resources"
    lines = found.ctx.lines()
    assert "terraform_data.node[0]: (local-exec): node 0 ready" in lines
    assert "Apply complete! Resources: 3 added, 0 changed, 0 destroyed." in lines


def test_a_failing_provisioner_is_named_with_its_address_and_its_output(
    said: Any,
) -> None:
    found = said("apply_fail.jsonl")

    assert found.error == (
        "local-exec provisioner error in terraform_data.node[1]: Error running command "
        "'echo node 1: quota exceeded >&2; exit 3': exit status 3. Output: node 1: quota exceeded"
    )
    assert (found.planned, found.finished, found.failed) == (3, 2, 1)


def test_what_broke_off_is_told_apart_and_is_no_progress(start: Any) -> None:
    found = Said(ctx=start(), step="apply")
    for _ in range(3):
        found.line('{"type": "planned_change", "change": {"action": "create"}}')
    for kind in ("apply_complete", "apply_errored", "apply_errored"):
        found.line(json.dumps({"type": kind}))

    sign = found.ctx.sign
    assert (sign.phase, sign.progress) == ("apply, 1 of 3 resources, 2 failed", 33)


def test_a_refused_variable_is_the_error_of_the_plan(said: Any) -> None:
    found = said("plan_badvar.jsonl", "plan")

    assert found.error.startswith(
        "Invalid value for variable: name must be lower-case letters, digits and hyphens."
    )


def test_a_plan_without_changes_has_none(said: Any) -> None:
    found = said("plan_nochange.jsonl", "plan")

    assert (found.planned, found.added, found.errors) == (0, 0, [])


def test_a_destroy_counts_what_is_gone(said: Any) -> None:
    found = said("destroy.jsonl")

    assert (found.planned, found.finished, found.destroyed) == (4, 4, 4)


def test_a_replacement_is_two_steps_and_drift_is_counted(start: Any) -> None:
    found = Said(ctx=start(), step="plan")

    found.line('{"type": "planned_change", "change": {"action": "replace"}}')
    found.line('{"type": "planned_change", "change": {"action": "noop"}}')
    found.line('{"type": "resource_drift", "change": {"action": "update"}}')

    assert (found.planned, found.drifted) == (2, 1)


@pytest.mark.parametrize(
    "line",
    [
        "plain words",
        "{not json",
        "[1, 2]",
        "{" * 5000,
        '{"type": "diagnostic", "diagnostic": 7}',
        '{"type": "diagnostic"}',
        '{"type": "planned_change", "change": "create"}',
        '{"type": "change_summary", "changes": {"add": "many", "remove": null}}',
        '{"type": ["apply_complete"], "@message": 5}',
        '{"@level": {"a": 1}, "@message": "<script>alert(1)</script>"}',
    ],
)
def test_no_line_whatever_it_holds_stops_the_reading(start: Any, line: str) -> None:
    found = Said(ctx=start(), step="apply")

    found.line(line)

    assert len(found.ctx.lines()) == 1
    assert (found.planned, found.added, found.destroyed) == (0, 0, 0)


def test_many_errors_are_told_in_part_and_counted(start: Any) -> None:
    found = Said(ctx=start(), step="apply")
    for number in range(5):
        about = {"severity": "error", "summary": f"wrong {number}"}
        found.line(json.dumps({"type": "diagnostic", "diagnostic": about}))

    assert found.error == "wrong 0; wrong 1; wrong 2; and 2 more"
