"""The image without an engine: its steps in a folder, its entry point as another user.

What the Dockerfile says is done, line by line, with `/` in a folder of the test: COPY of
what .dockerignore leaves, uv, collectstatic, compileall. Only what brings programs by
pip and apt is left out. Then the default command runs there as uid 10001, with the
image's variables, on files that it cannot write.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from project.modes import MODES
from tests.deploy.files import ROOT, Instruction, dockerfile, values
from tests.processes import Process
from tests.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.race]

_, BUILD, IMAGE = dockerfile()
LEFT_OUT = ("pip install", "apt-get")  # what the machine has, or nobody can have here
UID = 10_001
DRAIN = 5.0  # seconds


class Image:
    """The root of a container, in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python = root / "usr/local/bin/python3.13"
        self.app = root / "app"
        self.data = root / "data"
        self.temporary = root / "tmp"

    def build(self, uv: str) -> None:
        """Do what the first stage says."""
        self._bring_python()
        self.app.mkdir()
        for one in BUILD:
            if one.word == "COPY":
                self._copy(one)
            elif one.word == "RUN" and not one.text.startswith(LEFT_OUT):
                self._run(one, uv)
        for folder in (self.data, self.temporary):
            folder.mkdir(mode=0o770)
            os.chown(folder, UID, 0)
        self.python.parent.parent.parent.parent.chmod(0o755)

    def environment(self, **more: str) -> dict[str, str]:
        """What the second stage says, and nothing of this process's."""
        said = {
            name: value
            for one in values(IMAGE, "ENV")
            for name, value in one.variables.items()
        }
        said |= {
            "PATH": f"{self.app}/.venv/bin:/usr/bin:/bin",
            "HOME": str(self.temporary),
            "TMPDIR": str(self.temporary),
            "ARCHIVE_ROOT": f"{self.data}/archive",
            "JOB_ROOT": f"{self.data}/jobs",
            # Python's own library stands in the folder too.
            "LD_LIBRARY_PATH": str(self.root / "usr/local/lib"),
        }
        return said | more

    def command(self, *arguments: str) -> list[str]:
        """The entry point with what follows it, or with the default command."""
        (entry,), (default,) = values(IMAGE, "ENTRYPOINT"), values(IMAGE, "CMD")
        first = entry.arguments
        if not shutil.which("tini"):
            first = first[first.index("--") + 1 :]
        return [*first, *(arguments or default.arguments)]

    def health(self, **more: str) -> int:
        """The exit code of HEALTHCHECK."""
        (check,) = values(IMAGE, "HEALTHCHECK")
        command = Instruction("CMD", check.text.partition("CMD ")[2]).arguments
        return self.run(command, **more).returncode

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """To its end, as the image's user."""
        return subprocess.run(
            command,
            env=self.environment(**more),
            **self.nobody(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def nobody(self) -> dict[str, Any]:
        """Where and as whom."""
        return {"cwd": self.app, "user": UID, "group": 0, "extra_groups": []}

    def _bring_python(self) -> None:
        """The interpreter of this process, where any user can read it."""
        prefix, local = Path(sys.base_prefix), self.root / "usr/local"
        (local / "bin").mkdir(parents=True)
        (local / "lib").mkdir()
        shutil.copy(Path(sys.base_prefix) / "bin/python3.13", self.python)
        for library in prefix.glob("lib/libpython3*.so*"):
            shutil.copy(library, local / "lib")
        shutil.copytree(
            prefix / "lib/python3.13",
            local / "lib/python3.13",
            ignore=shutil.ignore_patterns(
                "test", "site-packages", "idlelib", "tkinter", "ensurepip", "*.a"
            ),
        )

    def _copy(self, one: Instruction) -> None:
        *sources, _ = one.arguments
        kept = [
            line[1:]
            for line in (ROOT / ".dockerignore").read_text().splitlines()
            if line.startswith("!")
        ]
        for name in kept if sources == ["."] else sources:
            assert name in kept, f"{name} does not get past .dockerignore"
            source, target = ROOT / name, self.app / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)

    def _run(self, one: Instruction, uv: str) -> None:
        said = {
            name: value
            for each in values(BUILD, "ENV")
            for name, value in each.variables.items()
        }
        # The cache of this machine, so that nothing is fetched again.
        text = one.text.replace("--no-cache", "")
        subprocess.run(
            ["/bin/sh", "-ec", text],
            cwd=self.app,
            check=True,
            timeout=300,
            env={
                "PATH": f"{Path(uv).parent}:/usr/bin:/bin",
                "HOME": os.environ.get("HOME", "/"),
                "LD_LIBRARY_PATH": str(self.root / "usr/local/lib"),
                "UV_PYTHON": str(self.python),
                **{k: v for k, v in os.environ.items() if k == "UV_CACHE_DIR"},
                **said,
            },
        )


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """Built once for all tests here."""
    if os.getuid() != 0:
        pytest.skip("only root may run a program as another user, as this test does")
    if not (uv := os.environ.get("UV") or shutil.which("uv")):
        pytest.skip("uv is not on PATH, and the image is built by it")
    folder = Path(tempfile.mkdtemp(prefix="image-"))  # pytest's own are for root alone
    try:
        folder.chmod(0o755)
        one = Image(folder)
        one.build(uv)
        yield one
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def container(image: Image, tmp_path: Path) -> Iterator["Container"]:
    """A container of it, with a database of its own."""
    one = Container(image, log=tmp_path / "log")
    yield one
    one.remove()


class Container:
    """The default command in the folder, with variables as an operator gives them."""

    def __init__(self, image: Image, *, log: Path) -> None:
        self.image = image
        self.log = log
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        self.started: list[Process] = []
        secret = image.data / "secret_key"
        secret.write_text("k" * 60)
        self.given = {
            "DATABASE_URL": f"sqlite:///{image.data}/millrace.sqlite3",
            "SECRET_KEY_FILE": str(secret),
            "BASE_URL": "https://millrace.example.com",
            "METRICS_TOKEN": "for this test only",
            "PORT": str(self.port),
            "WORKER_DRAIN_TIMEOUT_S": f"{DRAIN:g}",
            "FALCON_SERVER_KEEP_ALIVE_SECONDS": "2",
        }

    def start(self, mode: str) -> Process:
        """Run it; nothing but its variables says what it is."""
        self.given["FALCON_MODE"] = mode
        process = Process(
            self.image.command(),
            program=(),
            env=self.image.environment(**self.given),
            log=self.log.with_name(f"log-{len(self.started)}"),
            **self.image.nobody(),
        )
        self.started.append(process)
        return process

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and text, as a proxy with TLS before it would get them."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            headers={"Host": "millrace.example.com", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, ""
        except OSError:
            return 0, ""

    def healthy(self) -> None:
        """Wait until HEALTHCHECK says so."""
        wait_until(
            lambda: self.image.health(**self.given) == 0,
            within=120,
            every=1,
            what=f"a healthy container: {self.started[-1].log}",
        )

    def remove(self) -> None:
        """With all that is left of it."""
        for process in self.started:
            process.end()
        for folder in (self.image.data, self.image.temporary):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def written(image: Image) -> dict[str, int]:
    """Every file of the application with the time of its last change."""
    return {
        str(path): path.lstat().st_mtime_ns
        for path in image.app.rglob("*")
        if ".venv" not in path.parts
    }


def test_all_runs_as_another_user_on_files_that_it_cannot_write(
    image: Image, container: Container
):
    before = written(image)
    container.given["TRUST_PROXY"] = "on"
    process = container.start("all")
    container.healthy()
    wait_until(lambda: container.get("/readyz")[0] == 200, within=60, what="ready")
    owners = {Path(f"/proc/{process.pid}").stat().st_uid}
    assert owners == {UID}

    tls = {"X-Forwarded-Proto": "https"}
    status, page = container.get("/admin/login/", **tls)
    assert status == 200
    # A name with a hash: what collectstatic made at build is what is served.
    sheet = page.split('href="/static/')[1].split('"')[0]
    assert len(sheet.split(".")) >= 3, sheet
    assert container.get(f"/static/{sheet}", **tls)[0] == 200

    bearer = {"Authorization": "Bearer for this test only"}
    assert container.get("/metrics")[0] == 401
    told = wait_until(
        lambda: (
            "millrace_master 1.0" in (found := container.get("/metrics", **bearer)[1])
            and found
        ),
        within=60,
        every=1,
        what="a master in the metrics",
    )
    assert 'millrace_nodes{kind="worker",state="running"} 1.0' in told

    began = time.monotonic()
    process.terminate()
    assert process.wait(within=DRAIN + 15) == 0, process.log
    assert time.monotonic() - began <= DRAIN + 2
    assert image.health(**container.given) == 1
    assert "Traceback" not in process.log
    for line in process.log.splitlines():
        assert json.loads(line)["message"], "every line is for machines"
    assert written(image) == before


def test_the_parts_start_in_any_order_and_only_those_that_may_migrate(
    image: Image, container: Container
):
    worker = container.start("worker")
    worker.says("waiting for the database: ", within=90)
    assert "`start` in mode all or api applies them" in worker.log
    api = container.start("api")
    container.healthy()
    worker.says("worker started", within=90)
    container.given["FALCON_MODE"] = "worker"
    container.healthy()
    # The API serves programs; people have the admin elsewhere.
    assert container.get("/admin/login/", **{"X-Forwarded-Proto": "https"})[0] != 200
    for process in (worker, api):
        process.send(signal.SIGTERM)
    for process in (worker, api):
        assert process.wait(within=DRAIN + 15) == 0, process.log


def test_what_is_wrong_is_one_line_and_78(image: Image):
    result = image.run(image.command(), FALCON_MODE="all")
    assert result.returncode == 78
    assert "DATABASE_URL is not set" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_entry_point_takes_other_commands(image: Image, container: Container):
    result = image.run(
        image.command("check", "--deploy", "--fail-level", "ERROR"), **container.given
    )
    assert result.returncode == 0, result.stderr
    assert image.run(image.command("showconfig"), **container.given).returncode == 0


def test_every_mode_is_known_to_the_image(image: Image, container: Container):
    result = image.run(image.command(), **container.given, FALCON_MODE="none")
    assert result.returncode == 78
    assert ", ".join(MODES) in result.stderr
