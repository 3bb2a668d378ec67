"""Users and groups stand in the place of the stock lists."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User

from workqueue import people


@pytest.mark.once
def test_the_stock_lists_are_replaced_however_often_it_is_asked():
    people.register()
    assert isinstance(admin.site.get_model_admin(User), people.UserAdmin)
    assert isinstance(admin.site.get_model_admin(Group), people.GroupAdmin)
