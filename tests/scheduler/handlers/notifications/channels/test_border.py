"""The table of kinds."""

import pytest

from scheduler.handlers.notifications.channels import border
from scheduler.handlers.notifications.models import Channel

pytestmark = pytest.mark.once


def test_a_kind_is_offered_if_and_only_if_it_is_built() -> None:
    assert set(Channel.Kind.values) == set(border.MODULES)


@pytest.mark.parametrize("kind", border.MODULES)
def test_every_module_has_what_the_border_needs(kind: str) -> None:
    module = border.module(kind)
    assert callable(module.opened)
    assert module.ConfigForm.base_fields is not None


def test_an_endpoint_never_shows_its_secret() -> None:
    endpoint = border.Endpoint(
        kind="email", name="ops", tenant_id=1, tenant="acme", config={}, secret="hush"
    )
    assert "hush" not in repr(endpoint)


def test_an_endpoint_with_a_fault_is_not_opened() -> None:
    endpoint = border.Endpoint(
        kind="email",
        name="ops",
        tenant_id=1,
        tenant="acme",
        config={},
        secret="",
        fault="no key opens it",
    )
    with (
        pytest.raises(border.Broken, match="no key opens it"),
        border.opened(endpoint),
    ):
        pass
