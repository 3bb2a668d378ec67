"""Text on a command line that is not UTF-8: Python hands it on as halves of surrogate pairs."""

import getpass
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests import factories

pytestmark = pytest.mark.django_db
TYPED = "x\udcff"  # what a shell sends as x and the byte 0xff
CLUSTER = ("submit", "cluster_provision", "--param", "name=demo")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("submit", TYPED), 3),
        ((*CLUSTER, "--tenant", TYPED), 3),
        (("submit", "cluster_provision", "--param", f"name={TYPED}"), 1),
        ((*CLUSTER, "--param", f"{TYPED}=1"), 1),
        (("submit", "cluster_provision", "--param", TYPED), 1),
        (("submit", "cluster_provision", "--params", f'{{"name": "{TYPED}"}}'), 1),
        ((*CLUSTER, "--param", f'variables={{"a": "{TYPED}"}}'), 1),
        (("job", "show", TYPED), 3),
        (("why", TYPED, "--tenant", "acme"), 3),
        (("why", "notifications.deliver", "--tenant", TYPED), 3),
        (("createtenant", TYPED, "--name", "New"), 1),
        (("createtenant", "new", "--name", "New", "--time-zone", TYPED), 1),
        (("archive", "verify", TYPED), 3),
        (("archive", "restore", TYPED), 3),
        (("archive", "restore", TYPED, "--into-table"), 3),
    ],
)
def test_a_name_that_is_no_text_is_refused_as_one_that_is_not_there(
    arguments: tuple[str, ...], code: int
) -> None:
    factories.tenant("acme")
    with pytest.raises(CommandError) as refused:
        call_command(*arguments, stdout=StringIO())
    assert refused.value.returncode == code
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (*CLUSTER, "--why", TYPED),
        ("createtenant", "new", "--name", TYPED),
        ("createtenant", "new", "--name", "New", "--module", TYPED),
        ("createtenant", "new", "--name", "New", "--why", TYPED),
    ],
)
def test_words_that_are_only_kept_are_kept_visibly(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: TYPED)  # it comes of LOGNAME
    out = StringIO()
    call_command(*arguments, stdout=out)
    assert out.getvalue()
