"""packer: build images by a template, in a workspace of their own.

Whether a build was stopped is our own knowledge: told by a signal Packer may end with
exit code 0, and writes "finished" for what it has just broken off.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobworker.context import JobContext
from jobworker.exceptions import JobFailed, Stopped
from jobworker.providers import images, process, workspace
from jobworker.providers.packer_lines import Said
from jobworker.providers.process import Ended
from workqueue.context import Outcome

PROGRAM = "packer"
TIER = "heavy"
KIND = "image"
TEMPLATE = "template.pkr.hcl"
VARIABLES = "vars.json"
PATIENCE = 120.0  # seconds from SIGINT to SIGTERM


def find(ctx: JobContext) -> str:
    """Packer's path. Raises JobFailed where it is missing."""
    path = process.find(ctx, PROGRAM, tier=TIER)
    process.version(path)
    return path


def build(
    ctx: JobContext,
    *,
    template: str,
    name: str,
    version: str,
    variables: dict[str, Any],
) -> Outcome:
    """Validate, build, keep what was made. Builds that finished are kept also where others failed."""
    program = find(ctx)
    folder = workspace.make(
        tenant=ctx.tenant,
        kind=KIND,
        name=name,
        job=ctx.job_id,
        module=workspace.module(KIND, template),
        now=ctx.now,
    )
    given = {"name": name, "version": version, **variables}
    workspace.write(folder, VARIABLES, given)
    packer = _Packer(ctx=ctx, program=program, folder=folder, image=f"{name} {version}")
    packer.validate()
    said, ended = packer.build()
    kept = [
        images.keep(
            ctx, name=name, version=version, artifact=artifact, workspace=folder
        )
        for artifact in said.artifacts.values()
        if artifact.is_image
    ]
    result: dict[str, Any] = {
        "builds": [
            {"build": each.build, "id": each.external_id, "files": each.files}
            for each in said.artifacts.values()
        ],
        "images": [
            {"build": each.build, "sha256": each.sha256, "files": each.files}
            for each in kept
        ],
    }
    if ended.code or said.error_count:
        ctx.save_result(result)
        raise JobFailed(said.error or f"packer build {ended.words}", code="packer")
    workspace.remove(folder)
    count = len(said.artifacts)
    plural = "" if count == 1 else "s"
    told = f"{count} build{plural} finished, {len(kept)} kept as image {name} {version}"
    return Outcome(seen=count, changed=len(kept), summary=told, details=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packer:
    """Packer at work in a workspace."""

    ctx: JobContext
    program: str  # full path
    folder: Path
    image: str  # "golden 2026.11"

    def validate(self) -> None:
        """Read the template and its variables."""
        self.ctx.phase("validate")
        said, ended = self._run("validate")
        if ended.code:
            raise JobFailed(
                said.error or f"packer validate {ended.words}", code="packer"
            )

    def build(self) -> tuple[Said, Ended]:
        """Build all that the template has."""
        self.ctx.phase("build")
        said, ended = self._run(
            "build", "-color=false", "-timestamp-ui=false", "-on-error=cleanup"
        )
        if said.cancelling:
            raise JobFailed(
                f"packer build of image {self.image} was interrupted by somebody else"
                " on its host; nothing was kept",
                code="packer",
            )
        return said, ended

    def _run(self, step: str, *options: str) -> tuple[Said, Ended]:
        said = Said(ctx=self.ctx)
        what = f"{PROGRAM} {step} of image {self.image}"
        ended = process.run_program(
            self.ctx,
            [
                self.program,
                step,
                "-machine-readable",
                *options,
                f"-var-file={VARIABLES}",
                TEMPLATE,
            ],
            cwd=self.folder,
            env=process.environment(home=self.folder, CHECKPOINT_DISABLE="1"),
            on_line=said.line,
            patience_s=PATIENCE,
            on_start=lambda pid: self.ctx.save_ref(
                process.reference(
                    what=what,
                    program=PROGRAM,
                    pid=pid,
                    folder=self.folder,
                    ended="removed what it had begun to make, if it was given the time",
                )
            ),
        )
        if ended.told:
            raise Stopped(f"{what} {ended.words}; nothing was kept")
        return said, ended
