import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from audit.models import Change, Event
from scheduler.handlers.archival import admin, apply_policies
from scheduler.handlers.archival.admin import size
from scheduler.handlers.archival.models import ArchivalPolicy, ArchiveFile
from tests import factories
from workqueue.models import Tenant

type Make = Callable[..., Any]

POLICIES = "admin:archival_archivalpolicy_changelist"
FILES = "admin:archival_archivefile_changelist"


def signed_in(user: Any, *codenames: str) -> Client:
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def url(verb: str, row: ArchiveFile | ArchivalPolicy) -> str:
    return reverse(f"admin:archival_{row._meta.model_name}_{verb}", args=[row.pk])


@pytest.fixture
def boss(db: None) -> Client:
    client = Client()
    client.force_login(factories.superuser())
    return client


@pytest.fixture
def file(ctx: Make, policy: Make, event: Make, root: Path) -> ArchiveFile:
    policy()
    event()
    event()
    apply_policies.run(ctx())
    return ArchiveFile.objects.get()


# --- policies


def test_a_policys_page_says_what_it_would_do_now(
    boss: Client, policy: Make, event: Make
) -> None:
    mine = policy(keep_days=1)
    event()

    page = boss.get(url("change", mine))

    assert "Would archive now: 1 rows" in page.content.decode()


def test_saving_a_policy_says_what_it_does_and_is_a_change(
    boss: Client, policy: Make, event: Make
) -> None:
    mine = policy(keep_days=3000)
    event()

    page = boss.post(
        url("change", mine),
        {
            "keep_days": "1",
            "action": "delete",
            "archive_keep_days": "",
            "is_enabled": "on",
        },
        follow=True,
    )

    mine.refresh_from_db()
    assert (mine.keep_days, mine.action) == (1, "delete")
    assert "Would delete now: 1 rows" in page.content.decode()
    change = Change.objects.get()
    assert (change.old["keep_days"], change.new["keep_days"]) == (3000, 1)
    assert change.tenant_id == mine.tenant_id


@pytest.mark.parametrize("days", ["0", "-1", "36501", "x", "1.5", ""])
def test_a_number_of_days_out_of_range_is_refused(
    days: str, boss: Client, policy: Make
) -> None:
    mine = policy()

    page = boss.post(url("change", mine), {"keep_days": days, "action": "archive"})

    mine.refresh_from_db()
    assert (page.status_code, mine.keep_days) == (200, 30)


def test_a_second_default_of_a_type_is_refused_in_a_sentence(
    boss: Client, policy: Make
) -> None:
    policy(tenant=None)

    page = boss.post(
        reverse("admin:archival_archivalpolicy_add"),
        {"record_type": "events", "tenant": "", "keep_days": "9", "action": "archive"},
    )

    assert "There is a default for this type of record." in page.content.decode()
    assert ArchivalPolicy.objects.count() == 1


def test_a_tenants_staff_sees_own_policies_and_the_defaults_but_no_others(
    acme: Tenant, policy: Make
) -> None:
    client = signed_in(factories.member(acme), "view_archivalpolicy")
    policy(keep_days=11)
    policy("runs", tenant=None, keep_days=22)
    theirs = policy(tenant=factories.tenant("other"), keep_days=33)

    page = client.get(reverse(POLICIES)).content.decode()

    assert ">11<" in page
    assert ">22<" in page
    assert "other" not in page
    assert client.get(url("change", theirs)).status_code == 404


def test_a_tenants_staff_cannot_change_or_make_a_default(
    acme: Tenant, policy: Make
) -> None:
    client = signed_in(
        factories.member(acme, "administrator"),
        "view_archivalpolicy",
        "change_archivalpolicy",
        "add_archivalpolicy",
    )
    default = policy("runs", tenant=None)

    refused = client.post(
        url("change", default), {"keep_days": "1", "action": "delete"}
    )
    client.post(
        reverse("admin:archival_archivalpolicy_add"),
        {"record_type": "events", "tenant": "", "keep_days": "1", "action": "delete"},
    )

    default.refresh_from_db()
    assert (refused.status_code, default.keep_days) == (403, 30)
    assert ArchivalPolicy.objects.count() == 1


def test_a_default_cannot_be_deleted_only_disabled(boss: Client, policy: Make) -> None:
    default = policy(tenant=None)

    assert boss.post(url("delete", default), {"post": "yes"}).status_code == 403
    assert ArchivalPolicy.objects.exists()


# --- files


def test_a_tenants_staff_sees_its_own_files_alone(
    file: ArchiveFile, acme: Tenant
) -> None:
    rights = ("view_archivefile", "download_archivefile", "verify_archivefile")
    mine = signed_in(factories.member(acme), *rights)
    other = signed_in(factories.member(factories.tenant("other")), *rights)

    assert url("change", file) in mine.get(reverse(FILES)).content.decode()
    assert url("change", file) not in other.get(reverse(FILES)).content.decode()
    answer = mine.get(url("download", file))
    b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    assert answer.status_code == 200
    assert other.get(url("download", file)).status_code == 404
    assert other.post(url("verify", file)).status_code == 404


@pytest.mark.parametrize("verb", ["verify", "download", "restore"])
def test_each_verb_needs_its_own_right(
    verb: str, file: ArchiveFile, acme: Tenant
) -> None:
    client = signed_in(factories.member(acme), "view_archivefile")
    page = client.get(url("change", file)).content.decode()
    send = client.post if verb != "download" else client.get

    assert send(url(verb, file)).status_code == 403
    assert url(verb, file) not in page


def test_a_download_is_the_file_as_an_attachment(
    boss: Client, file: ArchiveFile, root: Path
) -> None:
    answer = boss.get(url("download", file))

    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    assert content == (root / file.path).read_bytes()
    assert gzip.decompress(content).count(b"\n") == 2
    assert answer["Content-Type"] == "application/gzip"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("attachment")
    assert "Content-Encoding" not in answer


def test_verify_is_a_post_and_says_what_it_found(
    boss: Client, file: ArchiveFile, root: Path
) -> None:
    assert boss.get(url("verify", file)).status_code == 405
    page = boss.post(url("verify", file), follow=True).content.decode()
    assert "2 rows, as written" in page

    (root / file.path).unlink()
    page = boss.post(url("verify", file), follow=True).content.decode()
    assert "restore it from a backup" in page


def test_selected_files_are_verified_together(boss: Client, file: ArchiveFile) -> None:
    page = boss.post(
        reverse(FILES),
        {"action": "verify_selected", "_selected_action": [file.pk]},
        follow=True,
    )

    assert "1 of 1 files are whole." in page.content.decode()


def test_no_request_verifies_more_files_than_it_has_time_for(
    boss: Client, file: ArchiveFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "VERIFY_SECONDS", 0)
    file.pk, file.path, file.first_id = None, "acme/events/other", "0"
    file.save()

    page = boss.post(
        reverse(FILES),
        {
            "action": "verify_selected",
            "select_across": "1",
            "_selected_action": [file.pk],
        },
        follow=True,
    )

    whole, bad, left = map(str, page.context["messages"])
    assert whole == "0 of 1 files are whole."
    assert bad.startswith("acme/events/other: the file is not in")
    assert left.startswith("1 of the 2 selected files was not read")
    assert "manage.py archive verify" in left


def test_restore_asks_first_and_then_puts_the_rows_back(
    boss: Client, file: ArchiveFile
) -> None:
    asked = boss.get(url("restore", file)).content.decode()
    assert "The next archival run takes the rows out again" in asked
    assert not Event.objects.exists()

    done = boss.post(url("restore", file), {"why": "audit"}, follow=True)

    assert "2 of 2 rows are back in the table" in done.content.decode()
    assert Event.objects.count() == 2
    assert Change.objects.get().why == "audit"


def test_text_of_unknown_origin_stays_text(boss: Client, file: ArchiveFile) -> None:
    ArchiveFile.objects.update(tenant="<script>alert(1)</script>")
    file.refresh_from_db()

    for address in (reverse(FILES), url("change", file), url("restore", file)):
        assert "<script>alert(1)" not in boss.get(address).content.decode()


def test_the_lists_need_the_same_queries_for_50_rows_as_for_one(
    boss: Client, policy: Make, acme: Tenant, django_assert_max_num_queries: Any
) -> None:
    for number in range(50):
        policy(tenant=factories.tenant())
        ArchiveFile.objects.create(
            tenant_id=acme.pk,
            tenant="acme",
            record_type="events",
            path=f"{number}",
            first_id=f"{number}",
            last_id="9",
            min_at="2026-01-01T00:00:00Z",
            max_at="2026-01-01T00:00:00Z",
            rows=1,
            bytes=1,
            created_at="2026-01-01T00:00:00Z",
        )

    for name in (POLICIES, FILES):
        boss.get(reverse(name))  # what is cached per process
        with django_assert_max_num_queries(20):
            assert boss.get(reverse(name)).status_code == 200


@pytest.mark.once
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0 B"),
        (211, "211 B"),
        (1_200, "1.2 kB"),
        (345_678, "346 kB"),
        (9e9, "9.0 GB"),
    ],
)
def test_sizes_have_a_unit(number: int, expected: str) -> None:
    assert size(number) == expected.replace(" ", "\u00a0")
