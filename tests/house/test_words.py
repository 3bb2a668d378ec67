"""The project speaks of itself only, and its documents do not rot."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.house.sources import ROOT

pytestmark = pytest.mark.once

# Written so that this file does not find itself.
PLACES = re.compile(
    "|".join((r"/wo[r]k/", r"/t[m]p/millrace", r"pyp[i]\.org", r"python[h]osted"))
)
TEXT = {".py", ".md", ".toml", ".html", ".css", ".js", ".txt", ".yaml", ".yml", ""}


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no git work tree, so there is no list of its files")
    return [ROOT / line for line in listed.stdout.splitlines() if line != "uv.lock"]


def test_no_file_names_a_place_outside_the_project():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in TEXT and path.is_file()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if PLACES.search(line)
    ]
    assert found == []


def test_every_link_in_the_documents_leads_somewhere():
    found = [
        f"{path.name}: {target}"
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
        if not (path.parent / target).exists()
    ]
    assert found == []


def test_every_command_in_the_documents_exists():
    from django.core.management import get_commands

    found = {
        command
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        for command in re.findall(r"manage\.py ([a-z_]+)", path.read_text())
    }
    assert found <= set(get_commands())


def test_the_button_that_does_nothing_says_one_of_two_things():
    """Beside the verb of a page that asks first: what runs, and all the rest."""
    from workqueue import verbs

    templates = "".join(p.read_text() for p in (ROOT / "templates").rglob("*.html"))
    beside = r'<button class="mr-btn (?:primary|danger)">[^<]*</button>(?:\s*)<a class="mr-btn" href="[^"]*">([^<]*)</a>'
    said = {*re.findall(beside, templates), *re.findall(r'keep="([^"]*)"', templates)}
    said |= {one.keep for one in (*verbs.VERBS.values(), verbs.REPEAT) if one.keep}
    assert said == {"Let it run", "Leave it as it is"}
