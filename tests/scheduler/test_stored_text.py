"""All free text that the queue and the scheduler keep has passed the gate."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db.models import TextField

from audit import clock
from audit.transcript import Transcript
from scheduler import bootstrap, override
from scheduler.ticker import Ticker
from tests import factories
from tests.scheduler.timetable_for_tests import row
from workqueue import finish, pauses, policy, reclaim
from workqueue.attempt import Attempt, Finished
from workqueue.claim import Claimed, Demand, Marks, claim
from workqueue.context import Outcome
from workqueue.registry import Handler

HOSTILE = "password=hunter2hunter2 a\x00b \udcd1"
BY = {"who": "ann", "origin": "command"}


def hostile_step() -> str:
    return HOSTILE


def claimed(handler: str, **values: Any) -> Claimed:
    """An item of one process's own."""
    acme = factories.tenant()
    factories.item(acme, handler, tenant_slug=acme.slug, trigger="call", **values)
    demand = Demand(slow={handler: 1}, slow_total=1, fast={})
    [one] = claim(demand, node_id=factories.node().id, node="n", marks=Marks())
    return one


def test_whatever_is_told_is_kept_without_nul_and_without_its_secret(
    ticker: Ticker,
    timetable: Callable[..., tuple[Handler, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [plain, _] = timetable(row("plain", cadence="1h"), row("other", cadence=None))
    step = f"{__name__}.{hostile_step.__name__}"
    monkeypatch.setattr(bootstrap, "DATA_STEPS", (("told", step),))
    override.run_now("plain", **BY, why=HOSTILE)
    ticker.poll()  # the data step, and a tick of that request
    ticker.poll()
    override.run_now("plain", **BY, why=HOSTILE)
    override.change_cadence("plain", cadence="2h", **BY, why=HOSTILE)
    ticker._flag(SimpleNamespace(row=plain), HOSTILE)  # type: ignore[arg-type]
    pauses.pause(scope="everything", reason=HOSTILE, **BY)
    policy.save({"WORKER_CONCURRENCY": 3}, **BY, why=HOSTILE)
    one = claimed("other", retry_attempts=1)
    failing = Attempt(one, Transcript(claim_id=one.claim_id))
    ended = Finished(failing, Outcome(), "failed", HOSTILE, clock.now())
    finish.finish([ended], node_id=clock.uuid7(), node="n")
    held = claimed("other", abandon="hold")
    reclaim.give_up([held.claim_id], reason=HOSTILE)

    for app in ("workqueue", "scheduler"):
        for model in apps.get_app_config(app).get_models():
            for field in model._meta.get_fields():
                if type(field) is TextField:
                    # A new column needs its door above.
                    stored = "".join(model.objects.values_list(field.name, flat=True))  # type: ignore[attr-defined]
                    assert "a\N{SYMBOL FOR NULL}b" in stored, (model, field.name)
                    assert "hunter2" not in stored, (model, field.name)
