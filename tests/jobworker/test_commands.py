"""The commands of the job worker: what they print, and their exit codes."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit import clock
from audit.transcript import LineRow, store
from jobworker.models import Job
from tests import factories
from tests.processes import MANAGE
from workqueue.models import Tenant

Submit = Callable[..., Job]


def called(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def refused(*arguments: str) -> tuple[str, int]:
    with pytest.raises(CommandError) as problem:
        called(*arguments)
    return str(problem.value), problem.value.returncode


def test_submit_makes_a_job_and_says_how_to_follow_it(
    acme: Tenant, job_types: None
) -> None:
    said = called("submit", "act_light", "--tenant", "acme", "--param", "does=log:1")
    job = Job.objects.get()
    assert (job.params["does"], job.tenant_slug, job.origin) == (
        "log:1",
        "acme",
        "command",
    )
    assert f"manage.py job tail {job.id}" in said
    data = json.loads(
        called("submit", "act_light", "--params", '{"does": "log:2"}', "--json")
    )
    assert Job.objects.get(pk=data["id"]).tenant_slug == factories.platform().slug


def test_submit_without_a_type_lists_types_and_parameters(
    job_types: None, db: None
) -> None:
    said = called("submit")
    assert "act_heavy (heavy): For tests." in said
    assert "does  What to do. (default '')" in said


def test_submit_offers_what_people_submit_and_refuses_the_rest(acme: Tenant) -> None:
    said = called("submit")
    assert "cluster_provision (heavy):" in said
    assert "autodelete_sweep" not in said
    assert "autodelete_sweep" not in refused("submit", "nothing")[0]
    text, code = refused("submit", "autodelete_sweep", "--tenant", "acme")
    assert text == (
        "tenant: Jobs of type autodelete_sweep work for all tenants: they are the platform's."
    )
    assert code == 1
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("nothing",), "There is no job type 'nothing'.", 3),
        (("act_light", "--tenant", "nobody"), "There is no tenant 'nobody'.", 3),
        (("act_light", "--param", "x"), "“x”: Write it as name=value.", 1),
        (("act_light", "--param", "x=1"), "x: There is no such parameter.", 1),
        (("act_light", "--params", "["), "parameters: They are not a JSON object.", 1),
        (
            ("act_light", "--param", "does=", "--param", "does=x"),
            "does: It is given twice.",
            1,
        ),
    ],
)
def test_submit_says_what_is_wrong(
    job_types: None, db: None, arguments: tuple[str, ...], says: str, code: int
) -> None:
    text, exit_code = refused("submit", *arguments)
    assert text.startswith(says)
    assert exit_code == code
    assert not Job.objects.exists()


@pytest.mark.parametrize("priority", ["1000", "\uff15", "1.5", "x"])
def test_a_priority_that_is_none_is_refused(db: None, priority: str) -> None:
    with pytest.raises(CommandError, match="is no number from -100 to 100"):
        called("submit", "act_light", "--priority", priority)


def test_job_show_tells_all_and_why_it_waits(submitted: Submit) -> None:
    job = submitted("log:1")
    said = called("job", "show", str(job.id)[:13])
    assert "no job worker is alive" in said
    assert (
        json.loads(called("job", "show", str(job.id), "--json"))["type"] == "act_light"
    )


@pytest.mark.parametrize("id", ["zz", "", "0" * 40, "12345678", "-"])
def test_an_id_that_is_none_is_refused_with_its_own_exit_code(
    db: None, id: str
) -> None:
    _, code = refused("job", "show", "--", id)
    assert code == 3


def test_job_tail_prints_the_lines_and_the_end(acme: Tenant, attempt: Any) -> None:
    from jobworker import run

    one = attempt("log:3;fail:quota exceeded")
    run.run(one, ended=lambda _: None)
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("job", "tail", str(one.job.id), stdout=out, stderr=out)
    assert end.value.code == 1
    assert "line 3" in out.getvalue()
    assert "Failed after" in out.getvalue()
    assert "quota exceeded" in out.getvalue()


@pytest.fixture
def followed(attempt: Any) -> Job:
    """A job that runs, with three stored lines, and ends by itself never."""
    one = attempt("")
    at = clock.now()
    store(
        [LineRow(one.claimed.claim_id, seq, at, 20, f"line {seq}") for seq in (1, 2, 3)]
    )
    return one.job


@pytest.mark.parametrize("verb", ["tail", "show"])
def test_a_reader_who_goes_away_ends_the_command_without_a_word(
    followed: Job, process_env: dict[str, str], verb: str
) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*MANAGE, "job", verb, str(followed.id)],
        env=process_env,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.stderr, done.returncode) == (b"", 141)


def test_ctrl_c_ends_a_tail_without_a_word_and_the_job_goes_on(
    followed: Job, spawn: Any
) -> None:
    tail = spawn("job", "tail", str(followed.id))
    tail.says("line 3")
    tail.popen.send_signal(signal.SIGINT)
    assert tail.popen.wait(20) == 130
    assert [line[9:] for line in tail.log.splitlines()] == [
        f"line {seq}" for seq in (1, 2, 3)
    ]
    followed.refresh_from_db()
    assert followed.status == "running"
    assert followed.cancel_requested_at is None


def test_what_becomes_of_a_job_without_its_worker_is_no_fact_that_show_tells(
    submitted: Submit,
) -> None:
    job = submitted()
    ref = {"what": "an export", "token": "abc12345", "then": "it goes on"}
    Job.objects.update(external_ref=ref)
    facts = json.loads(called("job", "show", str(job.id), "--json"))
    assert facts["external"] == {"what": "an export", "token": "••••"}
    assert "it goes on" not in called("job", "show", str(job.id))


def test_job_cancel_and_adopt_say_what_became_of_it(
    submitted: Submit, acme: Tenant
) -> None:
    job = submitted()
    assert "It had not begun." in called("job", "cancel", str(job.id), "--why", "wrong")
    assert "has ended already: cancelled" in refused("job", "cancel", str(job.id))[0]
    assert "It began nothing outside" in refused("job", "adopt", str(job.id))[0]
    broken = factories.running_job(
        acme,
        factories.node("jobworker"),
        "act_follows",
        status="failed",
        finished_at=clock.now(),
        error_code="abandoned",
        external_ref={"what": "an export"},
    )
    assert "It starts nothing." in called("job", "adopt", str(broken.id))


def test_what_this_release_refuses_of_a_job_is_said_where_it_is_adopted(
    submitted: Submit, acme: Tenant
) -> None:
    broken = factories.running_job(
        acme,
        factories.node("jobworker"),
        "act_follows",
        status="failed",
        finished_at=clock.now(),
        params={"gone": 1, "api_token": "abc"},
        external_ref={"what": "an export"},
    )
    assert refused("job", "adopt", str(broken.id))[0].startswith("gone: ")
    assert "abc" not in called("job", "show", str(broken.id), "--json")


def test_why_explains_a_waiting_job(submitted: Submit) -> None:
    job = submitted()
    assert "! act_light: no job worker is alive" in called("why", str(job.id))
    [one] = json.loads(called("why", str(job.id), "--json"))
    assert one["reason"]
    Job.objects.update(status="failed", error="quota exceeded")
    assert "it is failed: quota exceeded" in called("why", str(job.id))
    assert refused("why", "notifications.deliver")[0] == "Say whose: --tenant SLUG."
