"""Parts of the platform: since when each is as it is, how often it came back, and its last error."""

from __future__ import annotations

import logging
import threading

import pytest

from corral.server.system.parts import Part, PartKind, with_past
from corral.server.system.recent_log import KEPT_LINES, LogFilter, RecentLog


def part(
    *, healthy: bool = True, detail: str = "", started_at: float | None = None, restarts: int | None = None
) -> Part:
    return Part(
        name="exporter gpu-7:9400",
        kind=PartKind.EXPORTER,
        healthy=healthy,
        detail=detail,
        started_at=started_at,
        restarts=restarts or 0,
        counts_restarts=restarts is not None,
    )


def seen(*moments: tuple[float, Part]) -> Part:
    known: Part | None = None
    for at, one in moments:
        known = with_past(known, one, at)
    assert known is not None
    return known


def test_a_part_keeps_the_time_of_its_last_change() -> None:
    known = seen((10.0, part()), (20.0, part()), (30.0, part(healthy=False, detail="refused")), (40.0, part()))
    assert (known.healthy, known.since, known.restarts) == (True, 40.0, 1)
    assert seen((10.0, part()), (20.0, part())).since == 10.0


def test_the_last_error_stays_after_the_part_works_again() -> None:
    failed = part(healthy=False, detail="refused")
    known = seen((10.0, failed), (20.0, failed), (30.0, part()), (40.0, part()))
    assert (known.last_error, known.last_error_at) == ("refused", 20.0)


def test_a_part_that_knows_when_it_was_started_is_believed() -> None:
    assert seen((10.0, part(started_at=4.0))).since == 4.0
    assert seen((10.0, part(started_at=4.0)), (20.0, part(started_at=15.0, restarts=3))).since == 15.0
    assert seen((10.0, part(started_at=4.0)), (20.0, part(started_at=15.0, restarts=3))).restarts == 3
    assert seen((10.0, part(started_at=4.0)), (20.0, part(healthy=False, started_at=4.0))).since == 20.0


def test_a_part_that_counts_its_restarts_is_believed_also_after_a_failure() -> None:
    """A daemon that was unreachable for a moment was not started again; one more start is one more."""
    moments = ((10.0, part(restarts=0)), (20.0, part(healthy=False, restarts=0)), (30.0, part(restarts=0)))
    assert seen(*moments).restarts == 0
    assert seen(*moments, (40.0, part(restarts=1))).restarts == 1


@pytest.fixture
def recent() -> RecentLog:
    return RecentLog()


def write(recent: RecentLog, logger: str, message: str, thread: str = "main") -> None:
    record = logging.LogRecord(logger, logging.WARNING, __file__, 1, message, None, None)
    record.threadName = thread
    recent.handle(record)


def test_lines_are_found_by_thread_and_by_logger(recent: RecentLog) -> None:
    write(recent, "corral.worker", "alerting failed", thread="alerting")
    write(recent, "corral.stores.database", "the disk is full")
    write(recent, "corral.storesomething", "not of the store")
    write(recent, "corral.telemetry.scraper", "exporter a:1: refused")
    write(recent, "corral.telemetry.scraper", "exporter b:1: refused")
    assert len(recent.lines(LogFilter(threads=("alerting",)))) == 1
    (line,) = recent.lines(LogFilter(loggers=("corral.stores",)))
    assert line.endswith("WARNING corral.stores.database the disk is full")
    (line,) = recent.lines(LogFilter(loggers=("corral.telemetry.scraper",), text="b:1"))
    assert "b:1" in line


def test_the_log_in_memory_is_bounded_and_shows_no_control_characters(recent: RecentLog) -> None:
    for number in range(KEPT_LINES + 10):
        write(recent, "corral.worker", f"line {number}")
    lines = recent.lines(LogFilter(loggers=("corral",)))
    assert (len(lines), lines[-1][-len("line 2009") :]) == (KEPT_LINES, "line 2009")
    write(recent, "corral.worker", "red \x1b[31m" + "x" * 10_000)
    last = recent.lines(LogFilter(loggers=("corral",)))[-1]
    assert "\x1b" not in last
    assert len(last) <= 2000


def test_handler_receives_all_log_records_until_it_is_detached(recent: RecentLog) -> None:
    recent.attach()
    try:
        thread = threading.Thread(target=logging.getLogger("corral.test").error, args=("heard",), name="tester")
        thread.start()
        thread.join()
    finally:
        recent.detach()
    logging.getLogger("corral.test").error("not heard")
    assert [line[-5:] for line in recent.lines(LogFilter(threads=("tester",)))] == ["heard"]
    assert len(recent.lines(LogFilter(loggers=("corral.test",)))) == 1
