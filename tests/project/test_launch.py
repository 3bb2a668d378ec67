"""What `start` does, in order; nothing is started when something is refused."""

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from project import demo, launch, upgrade
from project.modes import JOBWORKER, SCHEDULER, WEB, WORKER
from project.probes import DRAINING

pytestmark = pytest.mark.once


@pytest.fixture
def steps(monkeypatch, settings) -> list[str]:
    """What was done, in order, with everything that does it replaced."""
    done: list[str] = []
    settings.PRODUCTION = False
    settings.FALCON_MODE = "all"

    def step(word: str, result: object = None):
        return lambda *_, **__: (done.append(word), result)[1]

    monkeypatch.setattr(launch, "preflight", step("look"))
    monkeypatch.setattr(upgrade, "wait_for_database", step("wait"))
    monkeypatch.setattr(upgrade, "upgrade", step("migrate"))
    monkeypatch.setattr(launch.welcome, "administrator", step("administrator", "hush"))
    monkeypatch.setattr(launch.connections, "close_all", step("close"))
    monkeypatch.setattr(demo, "fill", step("fill"))
    return done


@pytest.fixture
def supervised(monkeypatch, steps) -> list[SimpleNamespace]:
    """What the supervisor was given."""
    given: list[SimpleNamespace] = []

    class Supervisor:
        def __init__(self, processes, **more):
            folder = Path(more["environment"]["MILLRACE_WAKE_SOCKET"])
            assert folder.is_dir()
            more["on_drain"]()
            draining = (folder / DRAINING).exists()
            given.append(
                SimpleNamespace(
                    processes=tuple(processes), wake=folder, draining=draining, **more
                )
            )

        def run(self) -> int:
            steps.append("run")
            return 7

    monkeypatch.setattr(launch, "Supervisor", Supervisor)
    return given


def run(steps, *, with_demo: bool = False) -> int:
    return launch.launch(
        with_demo=with_demo,
        environment={"A": "b"},
        check=lambda: steps.append("check"),
        say=lambda text: steps.append("say"),
    )


def test_everything_is_ready_before_the_first_process(steps, supervised):
    assert run(steps) == 7
    assert steps == [
        "look",
        "wait",
        "check",
        "migrate",
        "administrator",
        "say",
        "close",
        "run",
    ]
    (given,) = supervised
    assert given.processes == (WEB, SCHEDULER, WORKER, JOBWORKER)
    assert given.environment["A"] == "b"


def test_probes_learn_of_the_drain_and_the_folder_goes_at_the_end(steps, supervised):
    run(steps)
    assert supervised[0].draining
    assert not supervised[0].wake.exists()


def test_probes_learn_of_the_drain_although_a_cleaner_of_tmp_took_the_folder(
    steps, supervised, monkeypatch
):
    given = launch.Supervisor

    def without_its_folder(processes, *, environment, on_drain, **more):
        def clean_and_drain() -> None:
            Path(environment["MILLRACE_WAKE_SOCKET"]).rmdir()
            on_drain()

        return given(
            processes, environment=environment, on_drain=clean_and_drain, **more
        )

    monkeypatch.setattr(launch, "Supervisor", without_its_folder)
    assert run(steps) == 7
    assert supervised[0].draining
    assert not supervised[0].wake.exists()


@pytest.mark.parametrize(
    ("mode", "process"), [("worker", WORKER), ("jobworker", JOBWORKER)]
)
def test_a_worker_neither_migrates_nor_greets(
    steps, supervised, settings, mode, process
):
    settings.FALCON_MODE = mode
    run(steps)
    assert steps == ["look", "wait", "check", "close", "run"]
    assert supervised[0].processes == (process,)


def test_the_demo_has_its_outside_world_first_and_leads_the_others_there(
    steps, supervised
):
    run(steps, with_demo=True)
    (given,) = supervised
    assert [p.name for p in given.processes] == [
        "outside world",
        "web",
        "scheduler",
        "worker",
        "jobworker",
    ]
    assert given.environment["EMAIL_URL"].startswith("smtp://127.0.0.1:")
    assert steps.index("migrate") < steps.index("fill") < steps.index("run")


def test_the_demo_is_refused_in_production_before_anything_else(
    steps, supervised, settings
):
    settings.PRODUCTION = True
    with pytest.raises(upgrade.Refused, match="not with DJANGO_ENV=production"):
        run(steps, with_demo=True)
    assert steps == []


def test_a_release_that_cannot_collect_its_static_files_is_refused_with_the_command(
    steps, supervised, settings, monkeypatch, tmp_path
):
    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "/opt/x/collected")

    settings.PRODUCTION, settings.STATIC_ROOT = True, tmp_path
    monkeypatch.setattr(launch, "call_command", denied)
    with pytest.raises(upgrade.Refused) as refused:
        run(steps)
    assert str(refused.value) == (
        "the static files cannot be collected ([Errno 13] Permission denied: '/opt/x/collected'); "
        "run manage.py collectstatic once as the owner of this release"
    )
    assert supervised == []


def test_a_machine_without_a_folder_for_temporary_files_is_told_so(
    steps, supervised, monkeypatch
):
    def nowhere(**_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(launch.tempfile, "mkdtemp", nowhere)
    with pytest.raises(upgrade.Refused) as refused:
        run(steps)
    assert str(refused.value) == (
        "no temporary folder can be made (No usable temporary directory found); "
        "set TMPDIR to a folder that can be written"
    )
    assert steps == []


def test_what_is_refused_starts_nothing_and_leaves_nothing(
    steps, supervised, monkeypatch, tmp_path
):
    def refuse(**_):
        raise upgrade.Refused("no")

    monkeypatch.setattr(upgrade, "upgrade", refuse)
    monkeypatch.setattr(launch.tempfile, "mkdtemp", lambda **_: str(tmp_path / "wake"))
    (tmp_path / "wake").mkdir()
    with pytest.raises(upgrade.Refused):
        run(steps)
    assert supervised == []
    assert not (tmp_path / "wake").exists()
