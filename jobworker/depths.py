"""depths: how many jobs run and wait, tier by tier."""

from dataclasses import dataclass

from django.db.models import Count, Q

from jobworker.models import Job


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


def by_tier(tenants: frozenset[int] | None) -> Depths:
    """What is unfinished, of the tenants or of all. One query; it has a partial index."""
    mine = Job.objects.unfinished()
    if tenants is not None:
        mine = mine.filter(tenant_id__in=tenants)
    counted = {
        tier: (running, pending)
        for tier, running, pending in mine.order_by()
        .values("tier")
        .annotate(
            running=Count("pk", filter=Q(status=Job.Status.RUNNING)),
            pending=Count("pk", filter=Q(status=Job.Status.PENDING)),
        )
        .values_list("tier", "running", "pending")
    }
    return Depths(
        tiers=tuple(
            Depth(
                tier=tier.label,
                running=counted.get(tier, (0, 0))[0],
                pending=counted.get(tier, (0, 0))[1],
            )
            for tier in Job.Tier
        )
    )
