"""Steps of a bootstrap, for tests."""

from tests import factories


def add_a_tenant() -> str:
    number = factories.Tenant.objects.count()
    factories.tenant(f"built-in-{number}")
    return "one tenant added"


def add_and_fail() -> str:
    add_a_tenant()
    raise ValueError("it went wrong")
