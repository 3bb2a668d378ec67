"""The lines of a claim, as its page asks for them: none twice, none lost, however they are looked for."""

import logging
import re
from typing import Any

import pytest
from django.test import Client

from audit import clock, transcript
from audit.transcript import LineRow
from tests import factories, screens
from workqueue.follow import LEFT_OUT
from workqueue.models import Tenant
from workqueue.views import log

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss() -> Client:
    return screens.signed_in(factories.superuser("boss"))


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant("acme")


def lines(
    claim_id: Any, *texts: str, first: int = 1, level: int = logging.INFO
) -> None:
    at = clock.now()
    transcript.store(
        [LineRow(claim_id, first + n, at, level, text) for n, text in enumerate(texts)]
    )


def numbers(response: Any) -> list[int]:
    return [int(n) for n in re.findall(r'<div id="L(\d+)"', response.content.decode())]


def test_following_brings_new_lines_once_and_stops_at_the_end(
    boss: Client, acme: Tenant
):
    item = screens.executing(acme)
    address = f"/admin/run/{item.claim_id}/lines/?follow=1"
    lines(item.claim_id, "one", "two")
    first = boss.get(f"{address}&after=0")
    assert first.status_code == 200
    assert numbers(first) == [1, 2]
    html = first.content.decode()
    assert "follow=1&amp;after=2" in html
    # Nothing new, and the other parts have just been told.
    now = int(clock.now().timestamp())
    assert boss.get(f"{address}&after=2&at={now}").status_code == 204
    later = boss.get(f"{address}&after=2&at={now - log.PARTS_EVERY}")
    assert numbers(later) == []
    assert 'id="lead"' in later.content.decode()
    lines(item.claim_id, "three", first=3)
    assert numbers(boss.get(f"{address}&after=2&at={now}")) == [3]
    item.delete()
    screens.run(acme, id=item.claim_id, line_count=3)
    last = boss.get(f"{address}&after=2&at={now}")
    assert last.status_code == 286
    assert numbers(last) == [3]
    html = last.content.decode()
    assert "every 500ms" not in html
    assert "Succeeded" in html
    for part in ("lead", "steps", "attempts", "counters", "logcount"):
        assert f'id="{part}"' in html


def test_text_and_level_are_looked_for_in_all_lines_and_followed(
    boss: Client, acme: Tenant
):
    item = screens.executing(acme)
    lines(item.claim_id, *(f"text {n}" for n in range(1, 1501)))
    lines(item.claim_id, "TEXT 7 is broken", first=1501, level=logging.ERROR)
    address = f"/admin/run/{item.claim_id}/lines/"
    found = boss.get(address, {"tail": 1, "text": "text 7", "level": "error"})
    assert numbers(found) == [1501]
    assert "text=text%207&amp;level=error" in found.content.decode()
    assert numbers(boss.get(address, {"tail": 1, "text": "text 142"}))[0] == 142
    lines(item.claim_id, "other", "text 7 too", first=1502, level=logging.ERROR)
    asked = {"follow": 1, "after": 1501, "text": "text 7", "level": "error"}
    news = boss.get(address, asked)
    assert numbers(news) == [1503]
    assert "after=1503" in news.content.decode()


def test_the_page_itself_opens_with_what_was_looked_for(boss: Client, acme: Tenant):
    run = screens.run(acme, line_count=3)
    lines(run.id, "good", "good")
    lines(run.id, "bad", first=3, level=logging.WARNING)
    page = boss.get(f"/admin/run/{run.id}/", {"level": "warning"})
    assert numbers(page) == [3]
    html = page.content.decode()
    assert 'value="warning" aria-pressed="true">Warnings 1<' in html
    assert "Errors 0<" in html
    none = boss.get(f"/admin/run/{run.id}/", {"text": "nowhere\x00"})
    assert "No line matches." in none.content.decode()
    # A link to a line shows it, whatever else stands in the address.
    linked = boss.get(f"/admin/run/{run.id}/", {"level": "warning", "line": 1})
    assert numbers(linked) == [1, 2, 3]


def test_the_transcript_of_a_short_run_is_looked_through_too(
    boss: Client, acme: Tenant
):
    short = "\n".join(
        f"2026-11-29T14:00:00.000000Z {word} said {n}"
        for n, word in enumerate(["INFO", "ERROR", "INFO"], 1)
    )
    run = screens.run(acme, line_count=3, transcript=short)
    address = f"/admin/run/{run.id}/lines/"
    assert numbers(boss.get(address, {"tail": 1})) == [1, 2, 3]
    assert numbers(boss.get(address, {"tail": 1, "level": "error"})) == [2]
    assert numbers(boss.get(address, {"tail": 1, "text": "SAID 3"})) == [3]
    assert numbers(boss.get(address, {"after": 1, "text": "said"})) == [2, 3]


def test_more_lines_are_loaded_on_both_sides(boss: Client, acme: Tenant):
    run = screens.run(acme, line_count=3000)
    lines(run.id, *(f"text {n}" for n in range(1, 3001)))
    address = f"/admin/run/{run.id}/lines/"
    below = boss.get(address, {"after": 500})
    assert numbers(below) == list(range(501, 1501))
    assert 'data-load="after"' in below.content.decode()
    end = boss.get(address, {"after": 2500})
    assert numbers(end) == list(range(2501, 3001))
    assert "data-load" not in end.content.decode()


def test_a_full_transcript_says_how_many_lines_are_left_out_while_it_runs(
    boss: Client, acme: Tenant
):
    item = screens.executing(acme, progress={"seen": 3, LEFT_OUT: 1_234_567})
    lines(item.claim_id, "one")
    html = boss.get(f"/admin/run/{item.claim_id}/").content.decode()
    assert "its limit is reached, 1,234,567 more were left out" in html
    assert LEFT_OUT not in html


def test_colours_of_a_terminal_are_shown_and_nothing_else_of_it(
    boss: Client, acme: Tenant
):
    run = screens.run(acme, line_count=1)
    lines(run.id, "\x1b[1;31mred <b>\x1b[0m plain\x1b[2K\x1b]0;title\x07")
    html = boss.get(f"/admin/run/{run.id}/").content.decode()
    assert '<span><b class="a1 ab">red &lt;b&gt;</b> plain</span>' in html


def test_the_transcript_is_downloaded_as_plain_text(boss: Client, acme: Tenant):
    run = screens.run(acme, line_count=2)
    lines(run.id, "<script>alert(1)</script>", "two")
    response = boss.get(f"/admin/run/{run.id}/transcript/")
    body = b"".join(response.streaming_content).decode()
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.id}.txt"'
    assert [line.split(" ", 1)[1] for line in body.splitlines()[1:]] == [
        "INFO <script>alert(1)</script>",
        "INFO two",
    ]
