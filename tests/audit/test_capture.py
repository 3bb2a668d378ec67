import logging
import threading
from collections.abc import Iterator

import pytest

from audit.capture import OutsideAttempts, TranscriptHandler, captured_by

pytestmark = pytest.mark.once

type Lines = list[tuple[int, str]]


class Stubborn:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.fixture
def logger() -> logging.Logger:
    """With our handler alone: pytest's own raises what it cannot write."""
    found = logging.Logger("tests.audit.capture")  # noqa: LOG001 - outside the hierarchy
    found.addHandler(TranscriptHandler())
    return found


@pytest.fixture
def lines() -> Lines:
    return []


@pytest.fixture
def sink(lines: Lines) -> Iterator[None]:
    with captured_by(lambda level, text: lines.append((level, text))):
        yield


def test_records_go_to_whoever_records(
    logger: logging.Logger, lines: Lines, sink: None
):
    logger.info("sent %s to %s", 3, "acme")
    logger.warning("late")
    assert lines == [(20, "sent 3 to acme"), (30, "late")]


def test_outside_a_recording_nothing_is_kept(logger: logging.Logger, lines: Lines):
    with captured_by(lambda level, text: lines.append((level, text))):
        pass
    logger.info("outside")
    assert lines == []


def test_a_traceback_is_part_of_the_entry(
    logger: logging.Logger, lines: Lines, sink: None
):
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("it failed")
    assert lines[0][1].startswith("it failed\nTraceback (most recent call last):\n")
    assert lines[0][1].endswith("ValueError: broken")


@pytest.mark.parametrize("message", ["sent to %s", Stubborn()])
def test_what_cannot_be_written_out_is_said_and_breaks_nothing(
    logger: logging.Logger, lines: Lines, sink: None, message: object
):
    logger.info(message, Stubborn()) if isinstance(message, str) else logger.info(
        message
    )
    assert "could not be written" in lines[0][1]
    assert "RuntimeError" in lines[0][1]
    assert "test_capture.py" in lines[0][1]


def test_wrong_arguments_break_nothing(
    logger: logging.Logger, lines: Lines, sink: None
):
    logger.info("%s and %s", "one")
    assert lines[0][1].startswith("%s and %s (its arguments could not be written")


def test_odd_exceptions_are_written_whole(
    logger: logging.Logger, lines: Lines, sink: None
):
    class Local(BaseException):
        def __init__(self, one: object, two: object) -> None:
            self.lock = threading.Lock()
            super().__init__(one, two)

        def __str__(self) -> str:
            raise RuntimeError("no")

    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    group = ExceptionGroup("many", [ValueError(str(n)) for n in range(1_000)])
    for problem in (Local(1, 2), first, group):
        try:
            raise problem
        except BaseException:
            logger.exception("it failed")
    assert len(lines) == 3
    assert "Local" in lines[0][1]
    assert "ExceptionGroup: many (1000 sub-exceptions)" in lines[2][1]


def test_two_threads_never_mix(logger: logging.Logger):
    kept: dict[str, list[str]] = {"a": [], "b": []}
    both = threading.Barrier(2, timeout=10)

    def attempt(name: str) -> None:
        with captured_by(lambda _, text: kept[name].append(text)):
            both.wait()
            for number in range(200):
                logger.info("%s %s", name, number)

    threads = [threading.Thread(target=attempt, args=(name,)) for name in kept]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert kept == {name: [f"{name} {n}" for n in range(200)] for name in kept}


def test_the_console_gets_what_no_transcript_has():
    quiet = logging.LogRecord("x", logging.INFO, "x", 1, "x", (), None)
    loud = logging.LogRecord("x", logging.WARNING, "x", 1, "x", (), None)
    outside = OutsideAttempts()
    assert outside.filter(quiet)
    with captured_by(lambda level, text: None):
        assert not outside.filter(quiet)
        assert outside.filter(loud)
