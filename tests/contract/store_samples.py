"""Things to put into a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corral.control.ports import Store
from corral.control.records import AttemptRecord, JobRecord, JobSpec
from corral.core.model import Allocation, EndReason, Grant, Job, JobKind, JobState, Prediction, Request

ALLOCATION = Allocation(
    model="A100",
    grants=(
        Grant(node="node-1", gpus=("node-1/0", "node-1/1"), cpu_milli=8000, memory_bytes=1 << 36),
        Grant(node="node-2", gpus=("node-2/3",), gpu_milli=500),
    ),
)

#: every field differs from its default
BUSY_JOB = Job(
    id="j-1",
    name="训练-été",
    user="zoë",
    kind=JobKind.DISTRIBUTED,
    state=JobState.STOPPING,
    queue="night",
    request=Request(
        nodes=2,
        gpus=2,
        gpu_milli=1,
        cpu_milli=1500,
        memory_bytes=1 << 40,
        models=("A10", "H200"),
        labels=(("rack", "r 1"), ("zone", "")),
    ),
    priority=1,
    created_at=1700000000.123456,
    queued_at=1700000001.5,
    pinned_at=1700000002.25,
    user_order=-3,
    time_limit_seconds=3600.5,
    grace_seconds=0.0,
    attempt=4,
    allocation=ALLOCATION,
    allocated_at=1700000003.0,
    started_at=1700000004.0,
    ended_at=1700000005.0,
    stopping_for=EndReason.PREEMPTED,
    end_reason=EndReason.LOST,
    exit_code=0,
    message="line 1\nligne 2 — 行 3 \x00 \udc80",
    retries=2,
    faults=3,
    max_retries=0,
    not_before=1700000006.0,
    given_back=2,
    avoid_nodes=("node-9",),
    avoid_gpus=("node-1/7",),
    saved_seconds=12.5,
    attained_seconds=40.25,
    reached_seconds=9.75,
    predicted=Prediction(p50_seconds=60.0, p90_seconds=90.5, samples=7, like="zoë's 训练-# on 2 × 2 GPUs"),
    version=17,
)

SPEC = JobSpec(
    command=("python", "-c", "print('привет')"),
    env={"NAME": "数据", "RAW": "\udcff\x00", "B": "", "A": "1"},
    workdir="/home/zoë",
    labels={"team": "vision"},
)


def a_record(job_id: str, **changes: Any) -> JobRecord:
    fields: dict[str, Any] = {"name": f"name-of-{job_id}", "user": "ada", **changes}
    return JobRecord(job=Job(id=job_id, **fields), spec=JobSpec(command=("true",)))


def added(store: Store, *jobs: dict[str, Any]) -> list[JobRecord]:
    """Jobs with the given fields, committed, with ids from the store."""
    with store.write() as transaction:
        ids = transaction.jobs.next_ids(len(jobs))
        records = [a_record(job_id, **fields) for job_id, fields in zip(ids, jobs, strict=True)]
        transaction.jobs.add(records)
    return records


def an_attempt(job_id: str, number: int, **changes: Any) -> AttemptRecord:
    fields: dict[str, Any] = {"allocation": ALLOCATION, "planned_at": 100.0 + number, **changes}
    return AttemptRecord(id=f"{job_id}.{number}", job_id=job_id, number=number, **fields)


def ids_of(records: Sequence[JobRecord]) -> list[str]:
    return [record.job.id for record in records]
