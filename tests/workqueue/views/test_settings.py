"""Settings and Worker Node Configuration: what is refused, saved, shown and restored."""

from typing import Any

import pytest
from django.test import Client

from audit import clock
from audit.models import Change
from tests import factories, screens
from tests.screens import HOSTILE, LIVE
from workqueue import live, policy
from workqueue.models import Membership, Setting
from workqueue.policy import WORKER_NODE_CONFIGURATION as DECLARATION

pytestmark = pytest.mark.django_db
LIST, PAGE = "/admin/settings/", "/admin/settings/worker-node-configuration/"
GOOD = {
    "WORKER_CONCURRENCY": "10",
    "WORKER_POLL_INTERVAL_MS": "10000",
    "WORKER_CLAIM_TIMEOUT_SECONDS": "600",
    "WORKER_RECLAIM_INTERVAL_MS": "60000",
    "START_WORKERS_ON_MASTER": "on",
    "ENQUEUE_MODE": "every",
}
RIGHTS = ("workqueue.view_setting", "workqueue.edit_caps")
NUMBERS = [name for name in GOOD if name.startswith("WORKER_")]
# As people, scripts and other alphabets send them. An empty field is the way back to
# the default, which the page says; blanks around a number are trimmed.
BAD = [
    "0",
    "-1",
    "1.5",
    "ten",
    "null",
    "1000000000",
    "1e9",
    "NaN",
    "Infinity",
    "\u0661\u0662",
    "\uff11\uff12",
    "1 2",
    "0x10",
    "\x00",
    "9" * 5000,
]


@pytest.fixture(autouse=True)
def fresh() -> Any:
    live.forget()
    yield
    live.forget()


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.status_code
    return response.content.decode()


def key(name: str) -> Any:
    return DECLARATION.key(name)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_bad_number_is_refused_and_the_range_is_named(
    boss: Client, name: str, value: str
):
    html = text(
        boss.post(PAGE, {**GOOD, name: value, "_version": "0", "why": "x"}), 400
    )
    assert f"Enter a number from {key(name).low:,} to {key(name).high:,}." in html
    assert 'aria-invalid="true"' in html
    assert "Nothing was saved" in html
    assert not Setting.objects.exists()
    assert not Change.objects.exists()


@pytest.mark.parametrize("value", ["maybe", "2", "\x00", "null", "NaN"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("START_WORKERS_ON_MASTER", "Choose on or off."),
        ("ENQUEUE_MODE", "Choose every or due."),
    ],
)
def test_a_bad_choice_is_refused_and_the_choices_are_named(
    boss: Client, name: str, said: str, value: str
):
    assert said in text(boss.post(PAGE, {**GOOD, name: value, "_version": "0"}), 400)
    assert not Setting.objects.exists()


def test_what_was_typed_stays_and_what_was_good_is_not_saved_alone(boss: Client):
    html = text(
        boss.post(
            PAGE,
            {
                **GOOD,
                "WORKER_CONCURRENCY": "12",
                "WORKER_RECLAIM_INTERVAL_MS": "500",
                "_version": "0",
                "why": "wave",
            },
        ),
        400,
    )
    assert "500 is below the range. Enter a number from 1,000 to 3,600,000." in html
    for kept in ('value="500"', 'value="12"', 'value="wave"'):
        assert kept in html
    assert not Setting.objects.exists()


def test_blanks_are_trimmed_and_an_empty_field_is_the_default(boss: Client):
    response = boss.post(
        PAGE,
        {
            **GOOD,
            "WORKER_CONCURRENCY": " 12 ",
            "WORKER_POLL_INTERVAL_MS": "",
            "_version": "0",
            "why": "CHG-2240",
        },
    )
    assert response["Location"] == PAGE
    saved = Setting.objects.get()
    assert (saved.version, saved.values, saved.who, saved.origin, saved.why) == (
        1,
        {"WORKER_CONCURRENCY": 12},
        "boss",
        "admin",
        "CHG-2240",
    )
    change = Change.objects.get()
    assert (change.old, change.new, change.why) == (
        {},
        {"WORKER_CONCURRENCY": 12},
        "CHG-2240",
    )


def test_a_box_that_is_not_ticked_is_off(boss: Client):
    boss.post(
        PAGE,
        {
            **{k: v for k, v in GOOD.items() if k != "START_WORKERS_ON_MASTER"},
            "_version": "0",
        },
    )
    assert Setting.objects.get().values == {"START_WORKERS_ON_MASTER": False}


def test_who_saves_on_top_of_an_older_version_is_told(boss: Client):
    policy.save({"WORKER_CONCURRENCY": 20}, who="anna", origin="command", why="")
    html = text(
        boss.post(PAGE, {**GOOD, "WORKER_CONCURRENCY": "12", "_version": "0"}), 400
    )
    assert "was saved by anna while you were looking at version 0" in html
    assert Setting.objects.count() == 1


@pytest.mark.parametrize("seen", ["abc", "-1", "", "1" * 20, None])
def test_a_version_that_is_none_overwrites_nothing(boss: Client, seen: str | None):
    policy.save({"WORKER_CONCURRENCY": 20}, who="anna", origin="command", why="")
    sent = {**GOOD, "WORKER_CONCURRENCY": "12"} | ({"_version": seen} if seen else {})
    assert "was saved by anna" in text(boss.post(PAGE, sent), 400)
    assert Setting.objects.count() == 1


@pytest.mark.parametrize("versions", [0, 1])
def test_saving_without_a_change_keeps_the_version_and_says_so(
    boss: Client, versions: int
):
    if versions:
        policy.save({"WORKER_CONCURRENCY": 20}, who="anna", origin="command", why="")
    form = {
        **GOOD,
        "WORKER_CONCURRENCY": "20" if versions else "10",
        "_version": str(versions),
        "why": "only looked",
    }
    html = text(boss.post(PAGE, form, follow=True))
    assert "Nothing was changed." in html
    assert "is saved" not in html
    assert Setting.objects.count() == Change.objects.count() == versions


def test_the_page_says_what_each_process_uses_and_why(boss: Client):
    policy.save({"WORKER_CONCURRENCY": 12}, who="anna", origin="admin", why="wave")
    for host, used in (("app-1", 12), ("app-2", 12), ("queue-1", 12), ("queue-2", 8)):
        why = (
            "Its pool of 12 connections serves 8. Raise DB_POOL_SIZE or DB_MAX_OVERFLOW there."
            if used == 8
            else ""
        )
        report = {
            "slots": {"asked": 12, "used": used, "why": why},
            "settings_version": 0 if used == 8 else 1,
            "policy": {"WORKER_CONCURRENCY": used},
        }
        factories.node(host=host, report=report)
    html = text(boss.get(PAGE))
    for said in (
        "3 of 4\u00a0worker processes apply version 1",
        "queue-2 applied the defaults when it last reported",
        "on app-1, app-2, queue-1",
        "8 on queue-2",
        "Raise DB_POOL_SIZE or DB_MAX_OVERFLOW there.",
        "Default 10, from 1 to 500",
        "Save version 2",
    ):
        assert said in html
    assert "style=" not in html


def test_without_a_worker_the_page_says_what_to_start(boss: Client):
    assert "No worker process is running" in text(boss.get(PAGE))


def test_restoring_asks_shows_what_changes_and_writes_a_new_version(boss: Client):
    for value in (12, 20):
        policy.save({"WORKER_CONCURRENCY": value}, who="anna", origin="admin", why="")
    address = f"{PAGE}restore/1/"
    html = text(boss.get(address))
    assert "<del>20</del>" in html
    assert "<ins>12</ins>" in html
    text(boss.post(address, {"_version": "2", "why": ""}), 400)
    assert Setting.objects.count() == 2
    assert boss.post(address, {"_version": "2", "why": "too many"})["Location"] == PAGE
    newest = Setting.objects.newest(DECLARATION.name)
    assert newest is not None
    assert (newest.version, newest.values, newest.restored_from, newest.why) == (
        3,
        {"WORKER_CONCURRENCY": 12},
        1,
        "too many",
    )
    assert "restored version 1" in text(boss.get(PAGE))


def test_a_version_with_values_that_would_be_refused_is_not_restored(boss: Client):
    Setting.objects.create(
        name=DECLARATION.name,
        version=1,
        values={"WORKER_CONCURRENCY": 0},
        at=clock.now(),
        who="sql",
        origin="command",
    )
    policy.save({"WORKER_CONCURRENCY": 20}, who="anna", origin="admin", why="")
    html = text(boss.post(f"{PAGE}restore/1/", {"_version": "2", "why": "x"}), 400)
    assert "Enter a number from 1 to 500." in html
    assert boss.get(f"{PAGE}restore/99/").status_code == 404


@pytest.mark.parametrize(
    "stored",
    [{"WORKER_CONCURRENCY": HOSTILE, HOSTILE: HOSTILE}, [HOSTILE], HOSTILE, None, 5],
)
def test_the_page_stands_whatever_got_in_by_sql(boss: Client, stored: Any):
    Setting.objects.create(
        name=DECLARATION.name,
        version=1,
        values=stored if stored is not None else {},
        at=clock.now(),
        who=HOSTILE[:150],
        origin="command",
        why=HOSTILE,
    )
    factories.node(
        host=HOSTILE[:200],
        report={
            "slots": {"asked": 9, "used": 1, "why": HOSTILE},
            "policy": {"ENQUEUE_MODE": HOSTILE},
            "loop": HOSTILE,
        },
    )
    html = text(boss.get(PAGE)) + text(boss.get(LIST))
    assert not [
        html[max(html.index(mark) - 60, 0) :][:100] for mark in LIVE if mark in html
    ]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        ("", True),
        ("worker node", True),
        ("enqueue", True),
        ("PARALLEL", True),
        ("zebra", False),
        ("\x00", False),
        (HOSTILE, False),
    ],
)
def test_settings_are_found_by_name_key_and_sentence(
    boss: Client, sought: str, found: bool
):
    html = text(boss.get(LIST, {"q": sought}))
    assert (f'href="{PAGE}"' in html) is found
    assert not [mark for mark in LIVE[:4] if mark in html]


def test_settings_are_the_platforms(boss: Client):
    policy.save({"WORKER_CONCURRENCY": 12}, who="anna", origin="admin", why="")
    addresses = (LIST, PAGE, f"{PAGE}restore/1/")
    tenant = screens.signed_in(
        screens.staff(
            factories.tenant("acme"), *RIGHTS, role=Membership.Role.ADMINISTRATOR
        )
    )
    assert [tenant.get(address).status_code for address in addresses] == [404, 404, 404]
    assert tenant.post(PAGE, GOOD).status_code == 404
    viewer = screens.signed_in(
        screens.staff(factories.platform(), *RIGHTS, role=Membership.Role.VIEWER)
    )
    html = text(viewer.get(PAGE))
    assert "Save version" not in html
    assert "Restore…" not in html
    assert viewer.post(PAGE, {**GOOD, "_version": "1"}).status_code == 403
    assert viewer.post(f"{PAGE}restore/1/", {"why": "x"}).status_code == 403
    assert [Client().get(address).status_code for address in addresses] == [
        302,
        302,
        302,
    ]
    assert boss.get("/admin/settings/no-such/").status_code == 404
    assert Setting.objects.count() == 1
