"""depths: how many jobs run and wait, tier by tier."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Subquery

from jobworker.models import Job
from workqueue import depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The unfinished jobs of one tier."""

    tier: str  # as it is shown: heavy, mixed, poll-only
    running: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """All tiers."""

    tiers: tuple[Depth, ...]

    @property
    def running(self) -> int:
        """Jobs that run."""
        return sum(each.running for each in self.tiers)

    @property
    def pending(self) -> int:
        """Jobs that wait."""
        return sum(each.pending for each in self.tiers)


def by_tier(tenants: frozenset[int] | None) -> dict[str, Subquery]:
    """What is unfinished, of the tenants or of all: parts of a statement. They have a partial index."""
    mine = Job.objects.unfinished()
    if tenants is not None:
        mine = mine.filter(tenant_id__in=tenants)
    return {
        f"{tier}_{status}": depth.counted(mine.filter(tier=tier, status=status))
        for tier in Job.Tier.values
        for status in (Job.Status.RUNNING, Job.Status.PENDING)
    }


def of(found: Mapping[str, int]) -> Depths:
    """The same once it is read."""
    return Depths(
        tiers=tuple(
            Depth(
                tier=tier.label,
                running=found[f"{tier}_{Job.Status.RUNNING}"],
                pending=found[f"{tier}_{Job.Status.PENDING}"],
            )
            for tier in Job.Tier
        )
    )
