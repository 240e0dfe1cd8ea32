"""Estimated starts and what became of them, on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corral.control.ports import Store
from corral.core.scheduling.forecast.accuracy import PastEstimate

pytest_plugins = ("tests.servers.fixtures",)


def reported(job_id: str, made_at: float, **changes: Any) -> PastEstimate:
    fields: dict[str, Any] = {
        "attempt": 1,
        "queue": "夜",
        "user": "zoë",
        "p50": made_at + 60.5,
        "p90": made_at + 120.25,
        "raw_p50": made_at + 50.0,
        "raw_p90": made_at + 100.0,
    }
    return PastEstimate(job_id=job_id, made_at=made_at, **{**fields, **changes})


def added(store: Store, *estimates: PastEstimate) -> None:
    with store.write() as tables:
        tables.estimates.add(estimates)


def test_estimates_come_back_as_they_went_in(store: Store) -> None:
    first, second, started = reported("j-2", 10.0), reported("j-1", 20.25), reported("j-3", 15.0, started_at=70.0)
    added(store, second, first, started)
    with store.read() as tables:
        assert tables.estimates.open() == [first, second]
        assert tables.estimates.latest(10) == [first, started, second]
        assert tables.estimates.latest(2) == [started, second]
        assert tables.estimates.latest(10, since=15.0) == [started, second]
    corrected = replace(first, p90=500.0)
    added(store, corrected)
    with store.read() as tables:
        assert tables.estimates.open() == [corrected, second]


def test_all_open_estimates_of_an_attempt_are_settled_together(store: Store) -> None:
    early, late, next_attempt = reported("j-1", 10.0), reported("j-1", 40.0), reported("j-1", 900.0, attempt=2)
    added(store, early, late, next_attempt, reported("j-2", 11.0))
    with store.write() as tables:
        tables.estimates.settle({("j-1", 1): 75.5, ("j-9", 1): 80.0})
        # What is settled stays as it is.
        tables.estimates.settle({("j-1", 1): 99.0})
    with store.read() as tables:
        assert [one.job_id for one in tables.estimates.open()] == ["j-2", "j-1"]
        settled = [one for one in tables.estimates.latest(10) if one.started_at is not None]
    assert settled == [replace(early, started_at=75.5), replace(late, started_at=75.5)]
    assert [one.wait_seconds for one in settled] == [65.5, 35.5]


def test_estimates_of_jobs_that_never_started_are_withdrawn(store: Store) -> None:
    started = reported("j-1", 10.0, started_at=30.0)
    added(store, started, reported("j-1", 40.0, attempt=2), reported("j-2", 11.0))
    with store.write() as tables:
        tables.estimates.withdraw([("j-1", 1), ("j-1", 2), ("j-7", 1)])
    with store.read() as tables:
        assert [one.job_id for one in tables.estimates.open()] == ["j-2"]
        assert started in tables.estimates.latest(10)


def test_old_estimates_are_dropped(store: Store) -> None:
    old, new = reported("j-1", 10.0, started_at=30.0), reported("j-2", 20.0)
    added(store, old, new)
    with store.write() as tables:
        assert tables.estimates.prune(before=20.0) == 1
        tables.estimates.add([])
        tables.estimates.settle({})
        tables.estimates.withdraw([])
    with store.read() as tables:
        assert tables.estimates.latest(10) == [new]
