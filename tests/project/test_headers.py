"""Every page says what the browser may do on its behalf: next to nothing."""

import pytest

pytestmark = pytest.mark.once


@pytest.mark.django_db
def test_the_policy_allows_nothing_unsafe(client):
    answer = client.get("/admin/login/")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "camera=()" in answer["Permissions-Policy"]


@pytest.mark.django_db
def test_each_page_has_a_nonce_of_its_own(client):
    first, second = (client.get("/admin/login/") for _ in range(2))
    if "nonce-" in first["Content-Security-Policy"]:
        assert first["Content-Security-Policy"] != second["Content-Security-Policy"]
