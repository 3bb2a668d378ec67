"""leader and why, as operators call them: words, JSON, exit codes."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit import clock
from scheduler.election import Election
from scheduler.models import MasterLease
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import live


@pytest.fixture(autouse=True)
def fresh(transactional_db: None, timetable: Callable[..., Any]) -> None:
    timetable(row("plain"))
    live.forget()


def call(*arguments: str) -> tuple[str, int]:
    """What it prints, and its exit code."""
    out = StringIO()
    try:
        call_command(*arguments, stdout=out)
    except SystemExit as end:
        return out.getvalue(), int(end.code or 0)
    return out.getvalue(), 0


def test_leader_names_the_master_and_its_term(master: Election) -> None:
    text, code = call("leader")
    assert code == 0
    assert text.startswith(f"Master is {master._me.name}, term 1, elected ")
    assert text.endswith("1\N{NO-BREAK SPACE}server node alive.\n")


def test_leader_exits_with_3_where_there_is_none() -> None:
    text, code = call("leader")
    assert code == 3
    assert (
        text
        == "There is no master, and there never was one; 0\N{NO-BREAK SPACE}server nodes alive.\n"
    )


def test_leader_names_the_last_master_where_it_is_gone(master: Election) -> None:
    MasterLease.objects.update(expires_at=clock.now() - timedelta(seconds=41))
    text, code = call("leader")
    assert code == 3
    assert f"the last, {master._me.name} with term 1, ended 4" in text


def test_leader_prints_json(master: Election) -> None:
    text, code = call("leader", "--json")
    found = json.loads(text)
    assert code == 0
    assert (found["master"], found["term"], found["node_id"]) == (
        True,
        1,
        str(master._me.id),
    )
    master.resign(text="told to stop")
    text, code = call("leader", "--json")
    found = json.loads(text)
    assert code == 3
    assert (found["master"], found["node_id"], found["node"]) == (
        False,
        None,
        master._me.name,
    )


def test_why_prints_reasons_before_facts() -> None:
    factories.tenant("acme", is_active=False)
    text, code = call("why", "plain", "--tenant", "acme")
    lines = text.splitlines()
    assert code == 0
    assert lines[0] == "! acme is not eligible: inactive."
    marks = [line[0] for line in lines]
    assert marks == sorted(marks)
    assert set(marks) == {"!", "-"}


def test_why_prints_json() -> None:
    factories.tenant("acme")
    text, _ = call("why", "plain", "--tenant", "acme", "--json")
    found = json.loads(text)
    assert {"code", "text", "reason"} == set(found[0])
    assert "no_master" in {one["code"] for one in found}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("plein", "--tenant", "acme"),
            "There is no handler 'plein'. Did you mean plain?",
        ),
        (
            ("plain", "--tenant", "amce"),
            "There is no tenant 'amce'. Did you mean acme?",
        ),
        (("plain", "--tenant", "zzz"), "There is no tenant 'zzz'."),
        (
            ("0198f3a2-58e0-7b7e-a3b1-0c6d2f41b9e4",),
            "There is no job 0198f3a2-58e0-7b7e-a3b1-0c6d2f41b9e4.",
        ),
    ],
)
def test_why_exits_with_3_where_there_is_no_such_thing(
    arguments: tuple[str, ...], said: str
) -> None:
    factories.tenant("acme")
    with pytest.raises(CommandError) as refused:
        call("why", *arguments)
    assert refused.value.returncode == 3
    assert str(refused.value) == said


def test_a_tenant_must_be_named(manage: Callable[..., Any]) -> None:
    ended = manage("why", "archival.apply_policies")
    assert ended.returncode == 2
    assert "--tenant" in ended.stderr


def test_an_exit_code_reaches_the_shell(manage: Callable[..., Any]) -> None:
    ended = manage("why", "retired.handler", "--tenant", "platform")
    assert ended.returncode == 3
    assert "There is no handler 'retired.handler'." in ended.stderr
