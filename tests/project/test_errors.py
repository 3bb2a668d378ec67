"""The pages for what went wrong."""

import logging

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from project import errors
from project.request_id import HEADER
from tests import factories
from tests.screens import HOSTILE, LIVE, signed_in, staff

pytestmark = [pytest.mark.once, pytest.mark.django_db]


def said(answer):
    return answer.content.decode()


def test_what_is_not_there_says_so_in_the_house_look_with_the_requests_id():
    answer = Client().get("/nowhere/", headers={HEADER: "edge-4711"})
    assert answer.status_code == 404
    assert answer[HEADER] == "edge-4711"
    for words in ("There is nothing here", "<code>edge-4711</code>", "millrace.css"):
        assert words in said(answer)


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>", "\u00e4"])
def test_an_id_that_is_no_plain_word_is_replaced(given):
    answer = Client().get("/nowhere/", headers={HEADER: given})
    assert answer[HEADER] != given
    assert len(answer[HEADER]) == 32


def test_a_missing_right_is_told_with_who_can_give_it():
    reader = signed_in(staff(factories.tenant("acme")))
    answer = reader.get(reverse("admin:runs"))
    assert answer.status_code == 403
    assert "An administrator of your tenant can give it to you" in said(answer)


def test_a_form_without_its_token_says_what_to_do():
    answer = Client(enforce_csrf_checks=True).post(reverse("admin:login"), {})
    assert answer.status_code == 403
    assert "reload the page and send it again" in said(answer)


def test_a_malformed_request_is_told():
    answer = Client(headers={"host": "not a host"}).get("/admin/")
    assert answer.status_code == 400
    assert "cannot be read" in said(answer)


def test_a_failure_names_the_id_that_the_log_has(monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("audit.keyset.page", fail)
    reader = signed_in(factories.superuser())
    reader.raise_request_exception = False
    with caplog.at_level(logging.ERROR):
        answer = reader.get(reverse("admin:runs"), headers={HEADER: "abc-1"})
    assert answer.status_code == 500
    assert "<code>abc-1</code>" in said(answer)
    assert "the disk is full" not in said(answer)
    assert "request_id=abc-1" in caplog.text
    assert "the disk is full" in caplog.text


def test_the_page_of_a_failure_asks_the_database_nothing(rf):
    def refuse(*_):
        raise AssertionError("asked the database")

    with connection.execute_wrapper(refuse):
        assert errors.failed(rf.get("/")).status_code == 500


def test_a_hostile_address_stays_text():
    answer = Client().get(f"/{HOSTILE}")
    assert not any(live in said(answer) for live in LIVE)
