"""database_provision and database_destroy, with the real Terraform."""

import json
from typing import Any

import pytest

from jobworker.exceptions import InvalidParams
from jobworker.jobs import database_destroy, database_provision
from jobworker.models import Deployment, Job
from jobworker.params import read
from tests import factories

pytestmark = pytest.mark.usefixtures("terraform")


def test_a_database_gets_a_password_that_nobody_reads(run: Any) -> None:
    acme = factories.tenant("acme")
    asked = {"tenant": acme, "name": "ledger", "variables": '{"delay": 0}'}

    ctx, outcome = run("database_provision", **asked)

    assert outcome.summary == "3 added, 0 changed, 0 destroyed"
    made = Deployment.objects.get(kind="database")
    secrets = made.secrets()
    password = secrets["password"]
    assert len(password) >= 32
    assert (
        secrets["url"]
        == f"postgresql://ledger:{password}@ledger.database.invalid/ledger"
    )
    ctx.log(f"connecting as ledger with {password}")
    stored = [*ctx.lines(), json.dumps(made.outputs), json.dumps(made.variables)]
    stored.append(
        json.dumps(
            list(Job.objects.values("params", "result", "external_ref")), default=str
        )
    )
    assert not [text for text in stored if password in text]

    _, outcome = run("database_provision", **asked)

    assert outcome.summary == "no changes"
    assert Deployment.objects.get().secrets()["password"] == password

    _, outcome = run("database_destroy", tenant=acme, name="ledger")
    assert outcome.summary == "0 added, 0 changed, 3 destroyed"


def test_its_password_is_no_parameter() -> None:
    with pytest.raises(InvalidParams, match="Give password as a parameter of its own"):
        read(
            database_provision.Params,
            {"name": "ledger", "variables": '{"password": "x"}'},
        )


def test_two_jobs_on_one_database_share_a_lock_and_a_cluster_has_another() -> None:
    given = {"name": "ledger"}
    made = database_provision.lock(read(database_provision.Params, given))
    gone = database_destroy.lock(read(database_destroy.Params, given))

    assert made == gone == "deployment:database:ledger"
    assert database_provision.subject(read(database_provision.Params, given)) == (
        "deployment ledger"
    )
