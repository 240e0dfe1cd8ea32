"""The usage of attempts, on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corral.control.ports import Store
from corral.control.records import UsageRecord, UsageUpdate
from corral.core.model import EndReason, JobKind, JobState
from corral.core.monitoring.attempt_usage import NOTHING_MEASURED, Measured
from tests.contract.store_samples import added, an_attempt

pytest_plugins = ("tests.servers.fixtures",)

MEASURED = Measured(
    gpu_seconds=120.5,
    busy_gpu_seconds=60.25,
    idle_gpu_seconds=10.125,
    energy_joules=7_200_000_000.5,
    memory_peak_bytes=1 << 40,
    used_gpu_ids=("n1/0", "n1/1"),
)


def usage(attempt: str, planned_at: float, **changes: Any) -> UsageRecord:
    fields: dict[str, Any] = {
        "attempt_id": attempt,
        "job_id": attempt.partition(".")[0],
        "job_name": "训练-été",
        "user": "zoë",
        "group": "vision",
        "kind": JobKind.DISTRIBUTED,
        "queue": "night",
        "pool": "dark",
        "model": "A100",
        "nodes": 2,
        "gpu_milli": 2500,
        "gpu_ids": ("n1/0", "n1/1", "n2/0"),
        "queued_at": planned_at - 1.5,
        "planned_at": planned_at,
    }
    return UsageRecord(**{**fields, **changes})


def saved(store: Store, *records: UsageRecord) -> None:
    with store.write() as transaction:
        transaction.usage.save(records)


def test_usage_comes_back_as_it_went_in(store: Store) -> None:
    plain = usage("j-1.1", 10.0, group=None, model="", gpu_milli=0, gpu_ids=())
    full = usage(
        "j-1.2",
        20.25,
        started_at=21.0,
        ended_at=30.5,
        end_reason=EndReason.PREEMPTED,
        outcome=JobState.QUEUED,
    )
    saved(store, full, plain)
    with store.read() as transaction:
        assert transaction.usage.of_job("j-1") == [plain, full]
        assert transaction.usage.of_job("j-2") == transaction.usage.of_job("nonsense") == []


def test_the_times_change_and_what_was_planned_stays(store: Store) -> None:
    planned = usage("j-1.1", 10.0)
    saved(store, planned)
    with store.write() as transaction:
        transaction.usage.save_updates([UsageUpdate(attempt_id="j-1.1", started_at=11.0)])
        (running,) = transaction.usage.open()
        transaction.usage.save_updates(
            [
                UsageUpdate(
                    attempt_id="j-1.1",
                    started_at=11.0,
                    ended_at=12.0,
                    end_reason=EndReason.EXIT_CODE,
                    outcome=JobState.COMPLETED,
                ),
                UsageUpdate(attempt_id="j-77.1", started_at=11.0),
            ]
        )
    with store.read() as transaction:
        assert running == replace(planned, started_at=11.0)
        assert transaction.usage.open() == []
        assert transaction.usage.of_job("j-1") == [
            replace(running, ended_at=12.0, end_reason=EndReason.EXIT_CODE, outcome=JobState.COMPLETED)
        ]
        assert transaction.usage.of_job("j-77") == []


def test_measured_usage_is_stored_apart(store: Store) -> None:
    first = usage("j-1.1", 10.0)
    saved(store, first)
    with store.write() as transaction:
        transaction.usage.save_measured({"j-1.1": MEASURED, "j-9.9": MEASURED})
    ended = replace(first, ended_at=20.0, job_name="renamed")
    saved(store, ended)
    with store.read() as transaction:
        assert transaction.usage.of_job("j-1") == [replace(ended, measured=MEASURED)]
        assert transaction.usage.of_job("j-9") == []
    saved(store, usage("j-2.1", 1.0, measured=MEASURED))
    with store.read() as transaction:
        assert transaction.usage.of_job("j-2")[0].measured == NOTHING_MEASURED


def test_a_span_has_its_beginning_and_not_its_end(store: Store) -> None:
    saved(
        store,
        usage("j-1.1", 0.0, ended_at=100.0),  # ends as the span begins
        usage("j-2.1", 0.0, ended_at=100.5),
        usage("j-3.1", 0.0),  # lasts
        usage("j-4.1", 100.0, ended_at=100.0),  # failed at once, as the span begins
        usage("j-10.1", 150.0, ended_at=160.0),
        usage("j-5.1", 150.0, ended_at=900.0),
        usage("j-6.1", 200.0, ended_at=200.0),  # as the span ends
        usage("j-7.1", 200.0),
    )
    with store.read() as transaction:
        found = [record.job_id for record in transaction.usage.between(100.0, 200.0)]
        assert found == ["j-2", "j-3", "j-4", "j-5", "j-10"]
        assert [record.job_id for record in transaction.usage.open()] == ["j-3", "j-7"]


def test_usage_begins_with_the_first_job_that_was_queued(store: Store) -> None:
    with store.read() as transaction:
        assert transaction.usage.begins_at() is None
    # The second job was planned first: it did not have to wait.
    saved(store, usage("j-1.1", 50.0, queued_at=10.0), usage("j-2.1", 20.0), usage("j-3.1", 90.0))
    with store.read() as transaction:
        assert transaction.usage.begins_at() == 10.0


def test_the_latest_completed_runs_come_oldest_first(store: Store) -> None:
    saved(
        store,
        usage("j-1.1", 0.0, ended_at=50.0, outcome=JobState.COMPLETED),
        usage("j-2.1", 0.0, ended_at=20.0, outcome=JobState.COMPLETED),
        usage("j-3.1", 0.0, ended_at=90.0, outcome=JobState.FAILED),
        usage("j-4.1", 0.0, ended_at=70.0, outcome=JobState.COMPLETED),
        usage("j-5.1", 0.0),
    )
    with store.read() as transaction:
        assert [record.job_id for record in transaction.usage.completed(10)] == ["j-2", "j-1", "j-4"]
        assert [record.job_id for record in transaction.usage.completed(2)] == ["j-1", "j-4"]


def test_old_usage_goes_but_never_what_lasts(store: Store) -> None:
    saved(store, usage("j-1.1", 0.0, ended_at=9.0), usage("j-2.1", 0.0), usage("j-3.1", 0.0, ended_at=10.0))
    with store.write() as transaction:
        assert transaction.usage.prune(10.0) == 1
    with store.read() as transaction:
        assert [record.job_id for record in transaction.usage.between(0.0, 99.0)] == ["j-2", "j-3"]


def test_usage_outlives_its_job(store: Store) -> None:
    (record,) = added(store, {"state": JobState.COMPLETED})
    with store.write() as transaction:
        transaction.attempts.add([an_attempt(record.job.id, 1)])
        transaction.usage.save([usage(f"{record.job.id}.1", 10.0)])
        transaction.jobs.delete([record.job.id])
    with store.read() as transaction:
        assert transaction.attempts.of_job(record.job.id) == []
        assert len(transaction.usage.of_job(record.job.id)) == 1
