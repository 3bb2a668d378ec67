"""How many jobs run and wait, tier by tier."""

import pytest

from jobworker import depths
from tests import factories
from tests.jobworker.screening import ended, pending, running
from workqueue import depth
from workqueue.models import Tenant

pytestmark = pytest.mark.django_db


def test_unfinished_jobs_are_counted_by_tier_and_tenant(acme: Tenant):
    pending(acme)
    running(acme)
    pending(acme, tier="light")
    ended(acme)
    running(factories.tenant("granite"), tier="medium")
    found = depths.of(depth.read(depths.by_tier(None)))
    assert [(one.tier, one.running, one.pending) for one in found.tiers] == [
        ("heavy", 1, 1),
        ("mixed", 1, 0),
        ("poll-only", 0, 1),
    ]
    assert (found.running, found.pending) == (2, 2)
    mine = depths.of(depth.read(depths.by_tier(frozenset([acme.pk]))))
    assert (mine.running, mine.pending) == (1, 2)
