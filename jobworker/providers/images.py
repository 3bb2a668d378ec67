"""images: keep what a build made. Files move out of the workspace before it is removed.

They lie in `<JOB_ROOT>/images/<tenant>/<name>/<version>/<job>/`, and stay until a later
build of the same version takes their place.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from audit import clock, ledger
from jobworker.context import JobContext
from jobworker.models import Image
from jobworker.providers import state
from jobworker.providers.packer_lines import Artifact
from jobworker.providers.patient import patient
from jobworker.providers.workspace import PRIVATE_FOLDER


def keep(
    ctx: JobContext, *, name: str, version: str, artifact: Artifact, workspace: Path
) -> Image:
    """Move its files, write its row; the files of the row before go."""
    folder = _folder(ctx.tenant, name, version) / str(ctx.job_id) / artifact.build
    files = [_kept(workspace, named, folder) for named in artifact.files]
    image = _write(ctx, name=name, version=version, artifact=artifact, files=files)
    for older in folder.parent.parent.glob(f"*/{artifact.build}"):
        if older != folder:
            shutil.rmtree(older, ignore_errors=True)
    return image


def _folder(tenant: str, name: str, version: str) -> Path:
    return Path(settings.JOB_ROOT) / "images" / tenant / name / version


def _kept(workspace: Path, named: str, folder: Path) -> dict[str, Any]:
    """What is known of a file; one outside the workspace is named and left alone.

    Not to be repeated: a file that was moved is not found again.
    """
    source, root = (workspace / named).resolve(), workspace.resolve()
    if not source.is_relative_to(root) or not source.is_file():
        return {"path": named, "size": None, "sha256": ""}
    path = folder / source.relative_to(root)  # a/disk.img and b/disk.img are two
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    return {"path": str(path), "size": path.stat().st_size, "sha256": digest}


@patient
def _write(
    ctx: JobContext,
    *,
    name: str,
    version: str,
    artifact: Artifact,
    files: list[dict[str, Any]],
) -> Image:
    first = next((file["sha256"] for file in files if file["sha256"]), "")
    with transaction.atomic():
        state.hold(ctx, f"image {name} {version}")
        image, _ = Image.objects.update_or_create(
            tenant_id=ctx.tenant_id,
            name=name,
            version=version,
            build=artifact.build[:200],
            defaults={
                "tenant_slug": ctx.tenant,
                "provider": artifact.provider[:200],
                "external_id": artifact.external_id[:500],
                "files": files,
                "sha256": first,
                "source_job": ctx.job_id,
                "created_at": clock.DatabaseNow(),
                "created_by": ctx.created_by,
            },
        )
        ledger.event(
            type="image.built",
            tenant_id=ctx.tenant_id,
            tenant=ctx.tenant,
            subject=f"image:{name}/{version}",
            data={"build": artifact.build, "job": str(ctx.job_id), "sha256": first},
        )
    return image
