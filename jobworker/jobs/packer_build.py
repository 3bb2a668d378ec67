"""packer_build: build an image by a Packer template.

Outside: what the template's builders make; Packer removes it when it is interrupted or
fails. A second run builds again and takes the place of the image of the same version.
"""

from dataclasses import dataclass

from jobworker.context import JobContext
from jobworker.params import param
from jobworker.providers import given, packer
from workqueue.context import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """What is to be built."""

    name: str = given.name("Name of the image, the tenant's own.")
    version: str = param(
        "Its version.",
        pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
        says="letters, digits, dots, hyphens and underscores",
    )
    template: str = given.module(
        packer.KIND,
        "What to build it by: a folder of the job worker's modules.",
        default="golden",
    )
    variables: str = given.variables("name", "version")


def subject(params: Params) -> str:
    """What it works on."""
    return f"image {params.name} {params.version}"


def lock(params: Params) -> str:
    """One build of a version at a time."""
    return f"image:{params.name}:{params.version}"


def run(ctx: JobContext, params: Params) -> Outcome:
    """Validate, build, keep."""
    return packer.build(
        ctx,
        template=params.template,
        name=params.name,
        version=params.version,
        variables=given.parsed(params.variables),
    )
