"""Programs of jobs, with real processes."""

import logging
import resource
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection, connections

from audit import clock
from jobworker import programs
from jobworker.exceptions import JobFailed, Stopped
from jobworker.providers import process
from jobworker.providers.process import Ended
from tests.waiting import wait_until

PYTHON = sys.executable


class Run:
    """run_program in a thread of its own, as a job has it."""

    def __init__(self, ctx: Any, folder: Path, *argv: str, patience_s: float) -> None:
        self.ctx = ctx
        self.lines: list[str] = []
        self.pid = 0
        self.ended: Ended | None = None
        self.problem: BaseException | None = None
        self._argv, self._folder, self._patience = argv, folder, patience_s
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.ended = process.run_program(
                self.ctx,
                self._argv,
                cwd=self._folder,
                env=process.environment(home=self._folder),
                on_line=self.lines.append,
                patience_s=self._patience,
                on_start=lambda pid: setattr(self, "pid", pid),
            )
        except BaseException as problem:
            self.problem = problem
        finally:
            connections.close_all()

    def over(self, within: float = 30) -> "Run":
        self._thread.join(within)
        assert not self._thread.is_alive()
        return self


@pytest.fixture
def go(start: Any, tmp_path: Path) -> Any:
    runs: list[Run] = []

    def begin(*argv: str, patience_s: float = 60, ctx: Any = None) -> Run:
        runs.append(Run(ctx or start(), tmp_path, *argv, patience_s=patience_s))
        return runs[-1]

    yield begin
    for run in runs:
        run.ctx.stop("lost", kill_at=0)
        run.over()


def shell(script: str) -> tuple[str, ...]:
    """A shell script. What it only waits for it should `exec`: dash loses an interrupt
    that comes while it starts a command, and waits for that one to end.
    """
    return ("/bin/sh", "-c", script)


def test_both_outputs_come_as_lines_in_their_order_and_the_code_is_passed_on(
    go: Any,
) -> None:
    run = go(*shell("echo one; echo two >&2; printf three; exit 7")).over()

    assert run.lines == ["one", "two", "three"]
    assert run.ended == Ended(code=7, told=None)
    assert run.ended.words == "ended with exit code 7"


def test_a_program_is_given_nothing_of_the_workers_environment(
    go: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://somebody:secret@db/millrace")

    run = go("/usr/bin/env").over()

    names = {line.partition("=")[0] for line in run.lines}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG"}


def test_a_cancelled_program_is_interrupted_within_two_seconds(go: Any) -> None:
    run = go(
        *shell("trap 'echo bye; exit 1' INT; echo up; while :; do sleep 0.1; done")
    )
    wait_until(lambda: run.lines == ["up"], what="the program")
    before = clock.steady()

    run.ctx.stop("cancel")
    run.over()

    assert clock.steady() - before < 2
    assert run.lines == ["up", "bye"]
    assert run.ended.words == "was interrupted (SIGINT) and ended with exit code 1"


def test_the_whole_group_is_interrupted(go: Any) -> None:
    run = go(*shell("sleep 500 & sleep 500 & echo up; wait"))
    wait_until(lambda: run.lines == ["up"], what="the program")
    children = psutil.Process(run.pid).children(recursive=True)
    assert len(children) == 2

    run.ctx.stop("cancel")
    run.over()

    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []


def test_what_ignores_the_interrupt_is_ended_after_its_patience(go: Any) -> None:
    run = go(
        *shell("trap '' INT; echo up; while :; do sleep 0.1; done"), patience_s=0.5
    )
    wait_until(lambda: run.lines == ["up"], what="the program")

    run.ctx.stop("cancel")
    run.over()

    assert run.ended.words == "was ended (SIGTERM) and was ended by signal 15"


def test_what_ignores_everything_is_killed_when_the_time_is_over(go: Any) -> None:
    run = go(*shell("trap '' INT TERM; echo up; while :; do sleep 0.1; done"))
    wait_until(lambda: run.lines == ["up"], what="the program")
    before = clock.steady()

    run.ctx.stop("drain", kill_at=clock.steady() + 1)
    run.over()

    assert 0.9 < clock.steady() - before < 3
    assert run.ended.words == "was killed (SIGKILL) and was ended by signal 9"


def test_a_program_that_closes_its_output_is_still_watched(go: Any) -> None:
    run = go(*shell("exec >&- 2>&-; exec sleep 500"))
    wait_until(lambda: run.pid, what="the program")

    run.ctx.stop("cancel")

    assert run.over().ended.code == 130


def test_a_daemon_that_holds_the_output_open_does_not_hold_the_job(
    go: Any, tmp_path: Path
) -> None:
    script = "import os,time\nif os.fork()==0:\n os.setsid(); open('pid','w').write(str(os.getpid())); time.sleep(60)\nprint('over')"
    run = go(PYTHON, "-c", script)

    run.over(within=15)

    assert run.lines == ["over"]
    wait_until(lambda: (tmp_path / "pid").exists(), what="the daemon")
    psutil.Process(int((tmp_path / "pid").read_text())).kill()


def test_a_job_told_to_stop_before_starts_nothing(go: Any, start: Any) -> None:
    ctx = start()
    ctx.stop("cancel")

    run = go(*shell("echo up"), ctx=ctx).over()

    assert isinstance(run.problem, Stopped)
    assert run.lines == []


def test_what_the_job_raises_ends_the_program(start: Any, tmp_path: Path) -> None:
    ctx, pids = start(), []

    def refuse(line: str) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError, match="up"):
        process.run_program(
            ctx,
            shell("echo up; exec sleep 500"),
            cwd=tmp_path,
            env=process.environment(home=tmp_path),
            on_line=refuse,
            patience_s=60,
            on_start=pids.append,
        )

    assert not psutil.pid_exists(pids[0])


def test_a_program_goes_when_somebody_kills_its_guard(go: Any) -> None:
    run = go(*shell("echo up; exec sleep 500"))
    wait_until(lambda: run.lines == ["up"], what="the program")
    guard = psutil.Process(run.pid).parent()
    assert guard

    guard.kill()
    run.over()

    assert run.ended.code == -9
    wait_until(lambda: not psutil.pid_exists(run.pid), what="the end of the program")


def test_no_connection_is_held_while_it_runs(start: Any, tmp_path: Path) -> None:
    ctx, held = start(), []
    assert connection.connection is not None

    process.run_program(
        ctx,
        shell("echo up"),
        cwd=tmp_path,
        env=process.environment(home=tmp_path),
        on_line=lambda _: held.append(connection.connection),
        patience_s=60,
        on_start=lambda pid: ctx.save_ref({"pid": pid}),
    )

    assert held == [None]


def test_what_runs_and_its_cpu_time_can_be_found(go: Any) -> None:
    run = go(PYTHON, "-c", "print('up', flush=True)\nwhile True: pass")
    wait_until(lambda: run.lines, what="the program")

    def working() -> list[programs.Running]:
        return [one for one in programs.running() if (one.cpu_seconds or 0) > 0.2]

    [one] = wait_until(working, what="CPU time")
    assert (one.claim_id, one.pid) == (run.ctx.claim_id, run.pid)
    assert one.program.startswith("python")

    run.ctx.stop("cancel")
    run.over()
    assert programs.running() == []


def test_a_missing_program_is_named_with_what_to_do(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(JobFailed) as failure:
        process.find(start(), "terraform", tier="heavy")

    assert str(failure.value) == (
        "terraform is not on PATH of w-1, 1; install it or set heavy to 0"
    )
    assert failure.value.code == "program_missing"


def test_a_program_that_cannot_be_started_fails_the_job(
    go: Any, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)

    run = go(str(broken)).over()

    assert str(run.problem) == f"{broken} could not be started: Exec format error"


def test_the_version_is_asked_once_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "tool"
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\necho Tool v1.2\n")
    program.chmod(0o755)
    caplog.set_level(logging.INFO)

    assert {process.version(str(program)) for _ in range(3)} == {"Tool v1.2"}

    assert (tmp_path / "log").read_text() == "asked\n"
    assert f"program={program} version=Tool v1.2" in caplog.text


@pytest.mark.parametrize(
    "lines", [200_000, pytest.param(2_000_000, marks=pytest.mark.soak)]
)
def test_endless_output_and_a_line_of_200_mb_cost_no_memory(
    start: Any, tmp_path: Path, lines: int
) -> None:
    ctx = start()
    script = (
        f"import sys\nw=sys.stdout.write\nfor i in range({lines // 50}): w(('x'*200+'\\n')*50)\n"
        "for i in range(200): w('y'*1000000)\nw('\\n')"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    process.run_program(
        ctx,
        [PYTHON, "-c", script],
        cwd=tmp_path,
        env=process.environment(home=tmp_path),
        on_line=ctx.log,
        patience_s=60,
    )

    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KiB
    assert grown < 64 * 1024
    closed = ctx.closed()
    assert closed.line_count + closed.dropped == lines + 1
    assert "characters left out" in closed.rest[-1].text


def test_what_is_kept_of_a_program_is_true_whether_its_worker_is_dead_or_hangs(
    tmp_path: Path,
) -> None:
    ref = process.reference(
        what="packer build of image golden 1",
        program="packer",
        pid=17,
        folder=tmp_path,
        ended="removed what it had begun to make",
    )
    assert ref["then"] == (
        "where its worker has ended, it was interrupted and removed what it had begun to"
        " make; where its worker only hangs, it may still run, as pid 17 on"
        f" {socket.gethostname()}"
    )
    assert (ref["workspace"], ref["pid"]) == (str(tmp_path), 17)
