"""A tenant as people edit it."""

import pytest

from tests import factories
from workqueue.forms import TenantForm

pytestmark = pytest.mark.django_db
GOOD = {
    "slug": "acme",
    "name": "Acme",
    "is_active": "on",
    "time_zone": "Europe/Berlin",
    "modules": "",
}


def test_modules_are_lines_each_once():
    form = TenantForm({**GOOD, "modules": " b \n\na\nb"})
    assert form.is_valid()
    assert form.cleaned_data["modules"] == ["a", "b"]
    assert (
        TenantForm(instance=factories.tenant(modules=["x", "y"])).initial["modules"]
        == "x\ny"
    )
    assert TenantForm(instance=factories.tenant(modules="odd")).initial["modules"] == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slug", "a b"),
        ("slug", "\x00"),
        ("name", "a\x00"),
        ("time_zone", "Nowhere"),
        ("time_zone", "../etc"),
    ],
)
def test_what_no_tenant_can_have_is_refused(field: str, value: str):
    form = TenantForm({**GOOD, field: value})
    assert list(form.errors) == [field]
