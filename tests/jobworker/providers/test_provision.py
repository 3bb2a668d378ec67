"""The row of a deployment while jobs work on it."""

import json
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from audit import clock
from audit.models import Event
from jobworker import finish
from jobworker.dispatch import JOB_TYPES
from jobworker.exceptions import JobFailed
from jobworker.models import Deployment, Job
from jobworker.providers import left, patient, provision, state, terraform
from jobworker.providers.terraform import Kept
from jobworker.reconcile import reconcile
from tests.jobworker.rows import deployment, lose_key

LOST = "^this job was ended, its claim is gone: it writes nothing more on cluster demo$"
WORKING = [row.type for row in JOB_TYPES if row.programs == ("terraform",)]


def test_a_new_status_is_told_once(start: Any) -> None:
    ctx = start()
    one = deployment(ctx, last_job=ctx.job_id)

    for _ in range(2):
        provision.update(ctx, one, status=Deployment.Status.FAILED, resources=2)

    event = Event.objects.get()
    assert (event.type, event.subject) == (
        "deployment.failed",
        "deployment:cluster/demo",
    )
    assert event.data == {"job": str(ctx.job_id), "was": "active"}
    assert Deployment.objects.get().resources == 2


def test_a_job_that_was_followed_by_another_writes_nothing(start: Any) -> None:
    ctx = start()
    one = deployment(ctx, last_job=clock.uuid7())

    with pytest.raises(JobFailed) as failure:
        provision.update(ctx, one, status=Deployment.Status.FAILED)

    assert str(failure.value).startswith(
        f"another job has cluster demo by now: job {one.last_job}"
    )

    assert Deployment.objects.get().status == "active"
    assert not Event.objects.exists()


@pytest.mark.parametrize("type", WORKING)
@pytest.mark.parametrize("status", ["provisioning", "destroying"])
def test_what_a_job_was_working_on_fails_with_it_when_its_worker_is_gone(
    start: Any, type: str, status: str
) -> None:
    ctx = start(type)
    one = deployment(ctx, last_job=ctx.job_id, status=status)
    document = {"resources": [{"mode": "managed", "instances": [{}, {}]}]}
    body = json.dumps(document).encode()
    state.store(one.pk, body=body, document=document, job_id=ctx.job_id)

    assert reconcile() == [ctx.job_id]

    left, job = Deployment.objects.get(), Job.objects.get()
    assert (left.status, left.resources) == ("failed", 2)
    event = Event.objects.get(type="deployment.failed")
    assert (event.data["was"], event.data["why"]) == (status, job.error)


@pytest.mark.parametrize("status", ["active", "failed", "destroyed"])
def test_what_was_not_begun_when_its_job_broke_off_stays_as_it_is(
    start: Any, status: str
) -> None:
    ctx = start()
    deployment(ctx, last_job=ctx.job_id, status=status)

    assert reconcile() == [ctx.job_id]

    assert Deployment.objects.get().status == status
    assert not Event.objects.filter(subject__startswith="deployment:").exists()


def test_a_job_that_broke_off_leaves_alone_what_another_works_on(start: Any) -> None:
    ctx = start()
    deployment(ctx, last_job=clock.uuid7(), status="provisioning")

    assert reconcile() == [ctx.job_id]

    assert Deployment.objects.get().status == "provisioning"


def test_an_end_that_is_not_stored_leaves_the_deployment_as_it_was(start: Any) -> None:
    ctx = start()
    deployment(ctx, last_job=ctx.job_id, status="provisioning")

    with transaction.atomic():
        assert finish.end(Job.objects.get(), word="abandoned", code="x", error="y")
        assert Deployment.objects.get().status == "failed"
        transaction.set_rollback(True)

    assert Deployment.objects.get().status == "provisioning"
    assert Job.objects.get().status == "running"


def test_a_job_that_was_ended_moves_its_deployment_no_more(start: Any) -> None:
    """Its worker was frozen, or its thread was stuck, and goes on."""
    ctx = start()
    one = deployment(ctx, last_job=ctx.job_id, status="provisioning")
    assert reconcile() == [ctx.job_id]

    with pytest.raises(JobFailed, match=LOST):
        provision.update(ctx, one, status=Deployment.Status.ACTIVE)

    assert Deployment.objects.get().status == "failed"


def test_a_deployment_names_the_job_that_makes_it_from_its_first_moment(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = start()

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(provision, "_begin", die)
    monkeypatch.setattr(provision.terraform, "find", lambda _: "terraform")
    with pytest.raises(KeyboardInterrupt):
        provision.provision(
            ctx, kind="cluster", name="demo", module="offline", variables={}
        )
    assert Deployment.objects.get().last_job == ctx.job_id


@pytest.fixture
def late(start: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A job that was ended while it was cut off, after which another began."""
    monkeypatch.setattr(terraform, "find", lambda _: "terraform")
    ctx = start()
    assert reconcile() == [ctx.job_id]
    return ctx


@pytest.mark.parametrize("status", ["provisioning", "destroying", "active"])
def test_a_job_that_was_ended_takes_no_deployment_from_another(
    late: Any, status: str
) -> None:
    one = deployment(late, last_job=clock.uuid7(), status=status)
    goes_on: list[Any] = [
        lambda: provision.provision(
            late, kind="cluster", name="demo", module="offline", variables={}
        ),
        lambda: provision.destroy(late, kind="cluster", name="demo"),
        lambda: left.take_over(late, one, None),
    ]
    for act in goes_on:
        with pytest.raises(JobFailed, match=LOST):
            act()

    now = Deployment.objects.get()
    assert (now.last_job, now.status) == (one.last_job, status)


def test_a_job_that_was_ended_makes_no_deployment(late: Any) -> None:
    with pytest.raises(JobFailed, match=LOST):
        provision.provision(
            late, kind="cluster", name="demo", module="offline", variables={}
        )

    assert not Deployment.objects.exists()


@pytest.mark.parametrize("stored", [True, False])
def test_a_status_is_told_once_also_where_the_connection_is_lost_at_its_commit(
    start: Any, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    monkeypatch.setattr(patient, "LOOK_AGAIN", 0.001)
    ctx = start()
    one = deployment(ctx, last_job=ctx.job_id)
    commit, away = connection.commit, [True]

    def lost() -> None:
        if stored or not away:
            commit()
        if away:
            away.pop()
            raise OperationalError("the connection was lost")

    monkeypatch.setattr(connection, "commit", lost)

    provision.update(ctx, one, status=Deployment.Status.FAILED)

    assert Deployment.objects.get().status == "failed"
    assert Event.objects.filter(type="deployment.failed").count() == 1


def test_sensitive_outputs_that_the_row_cannot_hold_fail_nothing(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision, "LARGEST_SECRET_OUTPUTS", 20)
    ctx = start()
    found = Kept(outputs={"host": "a"}, secret_outputs={"key": "kkkk-kkkk-kkkk"})

    told = provision.outputs(ctx, found)

    assert told == {"outputs": {"host": "a"}, "secret_outputs": ""}
    assert ctx.lines() == [
        "outputs: host, key (sensitive)",
        "the sensitive outputs have 25 characters: more than 20 stand in the state alone",
    ]


@pytest.mark.parametrize("kind", ["cluster", "database"])
def test_a_secret_that_no_key_opens_is_said_in_one_sentence(
    start: Any, settings: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(terraform, "find", lambda _: "terraform")
    ctx = start()
    deployment(ctx, kind=kind)
    lose_key(settings)
    made_up = ("password",) if kind == "database" else ()
    jobs: list[Any] = [
        lambda: provision.provision(
            ctx,
            kind=kind,
            name="demo",
            module="offline",
            variables={},
            made_up=made_up,
        ),
        lambda: provision.destroy(ctx, kind=kind, name="demo"),
    ]

    for job in jobs:
        with pytest.raises(JobFailed) as failure:
            job()

        assert str(failure.value) == (
            "jobworker.Deployment.secret_variables cannot be read: it was encrypted with a"
            " key that FIELD_KEY no longer lists; put the old key back behind the new one"
        )
        assert failure.value.code == "unreadable_secret"
    assert Deployment.objects.get().status == "active"


def test_a_state_that_no_key_opens_is_said_before_terraform_asks_for_it(
    start: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terraform, "find", lambda _: "terraform")
    ctx = start()
    deployment(ctx)
    lose_key(settings)
    Deployment.objects.update(secret_variables="", secret_outputs="")

    with pytest.raises(JobFailed, match=r"^jobworker.TerraformState.body cannot be"):
        provision.destroy(ctx, kind="cluster", name="demo")


def test_what_a_job_left_fails_with_it_also_where_no_key_opens_its_secrets(
    start: Any, settings: Any
) -> None:
    ctx = start()
    deployment(ctx, last_job=ctx.job_id, status="destroying", resources=3)
    lose_key(settings)

    assert reconcile() == [ctx.job_id]

    found = Deployment.objects.get()
    assert (found.status, found.resources) == ("failed", 3)
    assert terraform.kept(ctx, found).words.startswith(
        "jobworker.TerraformState.body cannot be read: "
    )
