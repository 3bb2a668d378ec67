"""terraform: the program's commands on one deployment, in one workspace.

Its state and lock are rows of ours (state.py), its output goes to the job's transcript
line by line, its environment holds nothing of the worker's. What a stop leaves, as
measured: told by SIGINT it writes its state and marks what it was making as tainted,
to be replaced next time; killed, what it was making is missing from the state.
"""

import json
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from audit.secret import UnreadableSecret
from jobworker.context import JobContext
from jobworker.exceptions import JobFailed, Stopped
from jobworker.models import Deployment
from jobworker.providers import process, state, workspace
from jobworker.providers.patient import patient
from jobworker.providers.process import Ended
from jobworker.providers.terraform_lines import Said

PROGRAM = "terraform"
TIER = "heavy"
OLDEST = (1, 4)
PATIENCE = 60.0  # seconds from SIGINT to SIGTERM
NO_CHANGES, FAILED, CHANGES = 0, 1, 2  # exit codes of plan -detailed-exitcode
LONGEST_ERROR = 20  # lines of an error that is not told as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the stored state holds."""

    resources: int = 0
    tainted: int = 0
    outputs: dict[str, Any] = field(default_factory=dict)  # without the sensitive ones
    secret_outputs: dict[str, Any] = field(default_factory=dict)
    unreadable: str = ""  # why it is not known; `resources` is what the row says

    @property
    def words(self) -> str:
        """'state has 3 resources (1 tainted, replaced next time)'."""
        if self.unreadable:
            return self.unreadable
        plural = "" if self.resources == 1 else "s"
        tainted = (
            f" ({self.tainted} tainted, replaced next time)" if self.tainted else ""
        )
        return f"state has {self.resources} resource{plural}{tainted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terraform:
    """Terraform at work on a deployment."""

    ctx: JobContext
    deployment: Deployment
    program: str  # full path
    folder: Path
    env: dict[str, str]

    def init(self) -> None:
        """Read the module, reach the state."""
        self.ctx.phase("init")
        errors: list[str] = []

        def line(text: str) -> None:
            self.ctx.log(text)
            if (errors or text.startswith("Error:")) and text.strip():
                errors.append(text.strip())

        ended = self._run("init", "-input=false", "-no-color", on_line=line)
        if ended.code:
            raise self.failed("init", ended, " ".join(errors[:LONGEST_ERROR]))

    def plan(self, *options: str) -> Said:
        """What is to be done, kept in the file "plan" for `apply`."""
        self.ctx.phase("plan")
        said = Said(ctx=self.ctx, step="plan")
        arguments = ("-input=false", "-json", "-out=plan", "-detailed-exitcode")
        ended = self._run("plan", *arguments, *options, on_line=said.line)
        if ended.code not in (NO_CHANGES, CHANGES):
            raise self.failed("plan", ended, said.error)
        said.to_do = ended.code == CHANGES
        return said

    def apply(self) -> Said:
        """Do what was planned."""
        said = Said(ctx=self.ctx, step="apply")
        ended = self._run("apply", "-input=false", "-json", "plan", on_line=said.line)
        if ended.code:
            raise self.failed("apply", ended, said.error)
        return said

    def failed(self, step: str, ended: Ended, error: str) -> JobFailed:
        """The failure of a step, with what is there now."""
        if locked := locked_by_another(self.ctx, self.deployment):
            return locked
        error = error or f"{PROGRAM} {step} of {_name(self.deployment)} {ended.words}"
        return JobFailed(
            f"{error}; {kept(self.ctx, self.deployment).words}", code="terraform"
        )

    def _run(self, step: str, *arguments: str, on_line: Callable[[str], None]) -> Ended:
        what = f"{PROGRAM} {step} of {_name(self.deployment)}"
        ended = process.run_program(
            self.ctx,
            [self.program, step, *arguments],
            cwd=self.folder,
            env=self.env,
            on_line=on_line,
            patience_s=PATIENCE,
            on_start=lambda pid: self.ctx.save_ref(
                process.reference(
                    what=what,
                    program=PROGRAM,
                    pid=pid,
                    folder=self.folder,
                    ended=f"left its state in {workspace.ERRORED} in {self.folder},"
                    " if it had made anything and was given the time",
                )
            ),
        )
        if ended.told:
            raise Stopped(self._stopped(what, ended))
        return ended

    def _stopped(self, what: str, ended: Ended) -> str:
        there = kept(self.ctx, self.deployment).words
        if ended.told == signal.SIGKILL:
            there += (
                "; what it was making at that moment is missing from the state:"
                " look for it at the provider"
            )
        return f"{what} {ended.words}; {there}"


def find(ctx: JobContext) -> str:
    """Terraform's path. Raises JobFailed where it is missing or too old."""
    path = process.find(ctx, PROGRAM, tier=TIER)
    said = process.version(path)
    number = re.search(r"v(\d+)\.(\d+)", said)
    if number and (int(number[1]), int(number[2])) < OLDEST:
        raise JobFailed(
            f"{said} on {ctx.node} is too old; install {OLDEST[0]}.{OLDEST[1]} or newer",
            code="program_too_old",
        )
    return path


def environment(folder: Path, backend: dict[str, str]) -> dict[str, str]:
    """All that Terraform is given."""
    more = {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
    if settings.TF_PLUGIN_CACHE_DIR:
        more["TF_PLUGIN_CACHE_DIR"] = settings.TF_PLUGIN_CACHE_DIR
    return process.environment(home=folder, **more, **backend)


@patient
def kept(ctx: JobContext, deployment: Deployment) -> Kept:
    """What the state has."""
    return in_state(deployment)


def in_state(deployment: Deployment) -> Kept:
    """What its newest version has."""
    try:
        newest = state.newest(deployment)
    except UnreadableSecret as problem:
        return Kept(resources=deployment.resources, unreadable=str(problem))
    document = json.loads(newest.body) if newest else {}
    instances = [
        instance
        for resource in document.get("resources") or ()
        if resource.get("mode") == "managed"
        for instance in resource.get("instances") or ()
    ]
    # Not asked of `terraform output`: that reads the same, and prints each on one line.
    outputs: dict[bool, dict[str, Any]] = {False: {}, True: {}}
    for name, each in (document.get("outputs") or {}).items():
        outputs[bool(each.get("sensitive"))][name] = each.get("value")
    return Kept(
        resources=len(instances),
        tainted=sum(each.get("status") == "tainted" for each in instances),
        outputs=outputs[False],
        secret_outputs=outputs[True],
    )


@patient
def locked_by_another(ctx: JobContext, deployment: Deployment) -> JobFailed | None:
    """The failure that says which job holds the state; None: nobody else does."""
    lock = state.lock(deployment)
    if lock is None or lock.claim_id == ctx.claim_id:
        return None
    told = f"{_name(deployment)} is locked by job {lock.job} since {lock.created_at:%H:%M:%SZ}"
    if not state.is_held(lock):
        told += (
            ", which ended without giving it back:"
            " adopt that job to take over what it left"
        )
    return JobFailed(told, code="locked")


def _name(deployment: Deployment) -> str:
    return f"deployment {deployment.name}"


def files(folder: Path, variables: dict[str, Any]) -> None:
    """Write the variables, and the backend in place of any that the module has."""
    workspace.write(folder, "terraform.tfvars.json", variables)
    backend: dict[str, Any] = {"terraform": {"backend": {"http": {}}}}
    workspace.write(folder, "backend_override.tf.json", backend)
