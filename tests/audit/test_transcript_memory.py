"""Endless output: the memory that a transcript takes."""

import gc
import threading
from pathlib import Path
from typing import Any

import pytest

from audit import transcript
from audit.transcript import Transcript

once = pytest.mark.once


# --- memory (H22)


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


class Watch:
    """The most memory that was held while the block ran, over what was held before."""

    def __enter__(self) -> "Watch":
        gc.collect()
        self.before = self.most = resident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join(5)
        self.most = max(self.most, resident())
        self.growth = self.most - self.before

    def _look(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, resident())


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system has no /proc to look at"
)


@once
@needs_proc
def test_endless_output_does_not_grow_the_process(one: Transcript):
    line = "x" * 190
    with Watch() as watch:
        for number in range(120_000):  # the cap is reached at 50,000
            one.write(20, f"{number:010d}{line}")
        closed = one.close()
    assert watch.growth < 64 * 2**20
    assert closed.line_count + closed.dropped == 120_000
    assert closed.rest[-1].text.startswith("0000119999")


@once
@needs_proc
def test_many_short_lines_do_not_either(one: Transcript):
    with Watch() as watch:
        for number in range(130_000):
            one.write(20, str(number))
        closed = one.close()
    assert watch.growth < 64 * 2**20
    assert closed.line_count == transcript.LINES


@once
@needs_proc
def test_a_line_of_200_megabytes_is_cut_without_being_copied(one: Transcript):
    line = "x" * 200_000_000
    with Watch() as watch:
        one.write(20, line)
        closed = one.close()
    assert watch.growth < 64 * 2**20
    kept = closed.rest[0].text
    assert len(kept) <= transcript.LINE
    assert "characters left out" in kept
