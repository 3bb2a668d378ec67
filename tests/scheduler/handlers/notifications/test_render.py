"""From a notification to a message."""

from pathlib import Path
from typing import Any

import pytest

from scheduler.handlers.notifications import render
from scheduler.handlers.notifications.channels.border import Endpoint, Message, Refused
from scheduler.handlers.notifications.models import Notification

pytestmark = pytest.mark.once

ENDPOINT = Endpoint(
    kind="email", name="ops", tenant_id=1, tenant="acme", config={}, secret=""
)


def rendered(**payload: Any) -> Message:
    row = Notification(
        pk=5, tenant_id=1, dedupe_key="k", recipient="a@example.com", payload=payload
    )
    return render.message(row, endpoint=ENDPOINT)


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """A folder of templates that is looked into first."""
    settings.TEMPLATES = [
        {**settings.TEMPLATES[0], "DIRS": [tmp_path, *settings.TEMPLATES[0]["DIRS"]]}
    ]
    (tmp_path / "notifications").mkdir()
    return tmp_path / "notifications"


def test_a_template_makes_text_and_markup_and_escapes_in_markup_only(
    folder: Path,
) -> None:
    (folder / "news.txt").write_text(
        "{% autoescape off %}{{ what }} for {{ tenant }}{% endautoescape %}"
    )
    (folder / "news.html").write_text("<p>{{ what }}</p>")
    message = rendered(template="news", context={"what": "<b>"})
    assert (message.text, message.html) == ("<b> for acme", "<p>&lt;b&gt;</p>")


def test_without_markup_there_is_only_text(folder: Path) -> None:
    (folder / "news.txt").write_text("Hello")
    message = rendered(template="news")
    assert (message.text, message.html) == ("Hello", "")


def test_a_template_with_a_mistake_is_named_with_its_line(folder: Path) -> None:
    (folder / "news.txt").write_text("Hello\n{% nonsense %}")
    with pytest.raises(
        Refused, match=r"template notifications/news\.txt, line 2: Invalid block tag"
    ):
        rendered(template="news")


def test_a_template_that_fails_while_it_renders_is_named_with_its_line(
    folder: Path, settings: Any
) -> None:
    (folder / "news.txt").write_text("Hello\n\n{% url 'nowhere' %}")
    with pytest.raises(
        Refused, match=r"template notifications/news\.txt, line 3: NoReverseMatch"
    ):
        rendered(template="news")


def test_markup_that_includes_what_is_not_there_is_not_taken_for_missing(
    folder: Path,
) -> None:
    (folder / "news.txt").write_text("Hello")
    (folder / "news.html").write_text("{% include 'gone.html' %}")
    with pytest.raises(Refused, match=r"template gone\.html does not exist"):
        rendered(template="news")


def test_a_template_that_is_not_there_is_named() -> None:
    with pytest.raises(
        Refused, match=r"template notifications/nothing\.txt does not exist"
    ):
        rendered(template="nothing")


def test_names_of_templates_that_are_not_there_are_not_remembered() -> None:
    for number in range(300):
        with pytest.raises(Refused):
            rendered(template=f"invoice_{number}")
    [loader] = render._engine().engine.template_loaders
    assert len(loader.get_template_cache) < 100  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["../audit/runs", "/etc/passwd", "a b", "A", 5])
def test_only_names_below_the_domains_templates_are_taken(name: object) -> None:
    with pytest.raises(Refused):
        rendered(template=name)


def test_the_key_is_stable_and_says_nothing_of_the_dedupe_key() -> None:
    row = Notification(pk=5, tenant_id=1, dedupe_key="salary of anna")
    assert render.key(row) == render.key(row)
    assert render.key(row).startswith("n-5-")
    assert "salary" not in render.key(row)
    assert render.key(row) != render.key(
        Notification(pk=5, tenant_id=2, dedupe_key="salary of anna")
    )
