"""Jobs and attempts in a store, on every database."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from corral.control.ports import STEADY_FIELDS, NameTaken, Store, StoreConflict
from corral.control.records import JobFilter, JobRecord
from corral.core.model import EndReason, JobState
from tests.contract.store_samples import ALLOCATION, BUSY_JOB, SPEC, a_record, added, an_attempt, ids_of

pytest_plugins = ("tests.servers.fixtures",)

EVERYTHING = JobFilter()
NEW = "-created_at"


def test_a_job_comes_back_as_it_went_in(store: Store) -> None:
    record = JobRecord(job=BUSY_JOB, spec=SPEC)
    plain = a_record("j-2")
    with store.write() as transaction:
        transaction.jobs.add([record, plain])
        assert transaction.jobs.get("j-1") == record
    with store.read() as transaction:
        assert transaction.jobs.get("j-1") == record
        assert list(transaction.jobs.get("j-1").spec.env) == ["NAME", "RAW", "B", "A"]  # type: ignore[union-attr]
        assert transaction.jobs.get("j-2") == plain


NO_IDS = ("j-3", "j-0", "j-01", "j-+1", "j-١", "J-1", "1", "", "j-1\n", "j-1 ", "j-" + "9" * 30)


def test_invalid_job_id_finds_no_job(store: Store) -> None:
    (record,) = added(store, {})
    with store.write() as transaction:
        assert [transaction.jobs.get(text) for text in NO_IDS] == [None] * len(NO_IDS)
        assert [transaction.attempts.of_job(text) for text in NO_IDS] == [[]] * len(NO_IDS)
        transaction.jobs.delete(NO_IDS)
        assert transaction.jobs.get("j-1") == record


def test_a_job_needs_an_id_of_the_store(store: Store) -> None:
    with pytest.raises(ValueError, match="'job-1' is not the id of a job"), store.write() as transaction:
        transaction.jobs.add([a_record("job-1")])


def test_ids_grow_and_are_never_used_again(store: Store) -> None:
    with store.write() as transaction:
        assert transaction.jobs.next_ids(3) == ["j-1", "j-2", "j-3"]
        assert transaction.jobs.next_ids(0) == []
        transaction.jobs.add([a_record("j-3")])
    with store.write() as transaction:
        transaction.jobs.delete(["j-3"])
    with store.write() as transaction:
        assert transaction.jobs.next_ids(1) == ["j-4"]


def test_a_name_is_taken_once_per_user(store: Store) -> None:
    added(store, {"name": "train", "user": "ada"})
    with pytest.raises(NameTaken, match="job name 'train' is taken") as caught, store.write() as transaction:
        transaction.jobs.add([a_record("j-5", name="other"), a_record("j-6", name="train", user="ada")])
    assert (caught.value.kind, caught.value.name) == ("job", "train")
    with store.write() as transaction:
        assert transaction.jobs.get("j-5") is None
        transaction.jobs.add([a_record("j-5", name="train", user="bob"), a_record("j-6", name="Train", user="ada")])
    with pytest.raises(NameTaken, match="'twice'"), store.write() as transaction:
        transaction.jobs.add([a_record("j-7", name="twice"), a_record("j-8", name="twice")])


def test_jobs_are_found_by_name_newest_first(store: Store) -> None:
    added(
        store,
        {"name": "train", "user": "ada"},
        {"name": "train", "user": "bob"},
        {"name": "train-2", "user": "ada"},
        {"name": "训练", "user": "ada"},
    )
    with store.read() as transaction:
        assert ids_of(transaction.jobs.find(None, "train")) == ["j-2", "j-1"]
        assert ids_of(transaction.jobs.find("ada", "train")) == ["j-1"]
        assert ids_of(transaction.jobs.find("ada", "训练")) == ["j-4"]
        assert transaction.jobs.find("ada", "TRAIN") == []
        assert transaction.jobs.find("ad\0a", "train\udc80") == []


def test_a_task_is_found_by_its_own_name(store: Store) -> None:
    def task(job_id: str, name: str, task: str | None, user: str = "ada") -> JobRecord:
        record = a_record(job_id, name=name, user=user)
        return replace(record, spec=replace(record.spec, task=task))

    with store.write() as transaction:
        transaction.jobs.add(
            [
                task("j-1", "task_exp", "exp"),
                task("j-2", "NDFS_exp", "exp"),  # of an earlier prefix
                task("j-3", "no_task_exp", None),
                task("j-4", "task_exp", "exp", "bob"),
                task("j-5", "task_100_exp", "100_exp"),
            ]
        )
    with store.read() as transaction:
        found = {name: transaction.jobs.find_task("ada", name) for name in ("exp", "100_exp", "1000exp", "_exp", "Exp")}
        assert {name: record and record.job.id for name, record in found.items()} == {
            "exp": "j-2", "100_exp": "j-5", "1000exp": None, "_exp": None, "Exp": None,
        }  # fmt: skip
        assert transaction.jobs.find_task("eve", "exp") is None
        assert transaction.jobs.find_task("ad\0a", "%exp\0\udc80") is None


def test_taken_names_of_a_user_are_listed(store: Store) -> None:
    added(store, {"name": "a"}, {"name": "数"}, {"name": "b", "user": "bob"}, *({"name": f"n{n}"} for n in range(600)))
    with store.read() as transaction:
        assert transaction.jobs.names_taken("ada", ["a", "A", "b", "数", "a", "\0"]) == {"a", "数"}
        assert len(transaction.jobs.names_taken("ada", [f"n{n}" for n in range(1000)])) == 600
        assert transaction.jobs.names_taken("bob", []) == set()


def test_saving_counts_versions_up(store: Store) -> None:
    (record,) = added(store, {})
    changed = replace(BUSY_JOB, id=record.job.id, version=1)
    with store.write() as transaction:
        transaction.jobs.save([changed])
        transaction.jobs.save([replace(changed, priority=9, version=2)])
    with store.read() as transaction:
        assert transaction.jobs.get("j-1") == JobRecord(job=replace(changed, priority=9, version=2), spec=record.spec)


def test_progress_is_saved_without_what_stays_the_same(store: Store) -> None:
    (record,) = added(store, {})
    steady = {name: getattr(record.job, name) for name in STEADY_FIELDS}
    progressed = replace(BUSY_JOB, id=record.job.id, version=1, **steady)
    with store.write() as transaction:
        transaction.jobs.save_progress([progressed])
    with store.read() as transaction:
        assert transaction.jobs.get("j-1") == JobRecord(job=progressed, spec=record.spec)
    with pytest.raises(StoreConflict, match="1 of 1 job"), store.write() as transaction:
        transaction.jobs.save_progress([progressed])


def test_a_stale_version_loses_and_nothing_is_written(store: Store) -> None:
    records = added(store, {}, {}, {})
    changed = [replace(record.job, priority=1, version=1) for record in records]
    for stale in (0, 2, 7):
        changed[1] = replace(changed[1], version=stale)
        with pytest.raises(StoreConflict, match="1 of 3 jobs"), store.write() as transaction:
            transaction.jobs.save(changed)
    with store.read() as transaction:
        assert [transaction.jobs.get(record.job.id) for record in records] == records


def test_saving_a_job_that_is_gone_or_twice_in_a_batch_is_a_conflict(store: Store) -> None:
    (record,) = added(store, {})
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.jobs.save([replace(record.job, id="j-99", version=1)])
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.jobs.save([replace(record.job, version=1), replace(record.job, version=1)])
    with store.write() as transaction:
        transaction.jobs.save([])
        assert transaction.jobs.get("j-1") == record


def test_a_swallowed_conflict_still_writes_nothing(store: Store) -> None:
    first, second = added(store, {}, {})

    def careless() -> None:
        with store.write() as transaction:
            with suppress(StoreConflict):
                transaction.jobs.save([replace(first.job, version=1), replace(second.job, version=5)])
            transaction.meta.put("note", "went on")

    with pytest.raises(StoreConflict):
        careless()
    with store.read() as transaction:
        assert transaction.jobs.get("j-1") == first
        assert transaction.meta.get("note") is None


def test_live_jobs_are_those_that_have_not_ended(store: Store) -> None:
    added(store, *({"state": state, "name": state.value} for state in reversed(JobState)))
    with store.read() as transaction:
        live = transaction.jobs.live()
        assert [job.id for job in live] == ["j-4", "j-5", "j-6", "j-7", "j-8"]
        assert {job.state for job in live} == {state for state in JobState if not state.is_ended}
        assert transaction.jobs.counts() == {state.value: 1 for state in JobState}


def test_jobs_are_deleted_with_their_attempts(store: Store) -> None:
    added(store, {}, {})
    with store.write() as transaction:
        transaction.attempts.add([an_attempt("j-1", 1), an_attempt("j-2", 1)])
    with store.write() as transaction:
        transaction.jobs.delete(["j-1", "j-77", "nonsense"])
        transaction.jobs.delete([])
    with store.read() as transaction:
        assert transaction.jobs.get("j-1") is None
        assert transaction.jobs.counts() == {"created": 1}
        assert [attempt.id for attempt in transaction.attempts.all_allocations()] == ["j-2.1"]


# ------------------------------------------------------------------------------------------------ pages


def test_the_times_of_an_attempt_are_stored_and_its_allocation_never_changes(store: Store) -> None:
    added(store, {}, {})
    planned = an_attempt("j-1", 1)
    ended = replace(
        planned,
        started_at=102.0,
        ended_at=103.5,
        end_reason=EndReason.OOM_KILLED,
        exit_code=-9,
        message="killed: \x00 内存",
    )
    with store.write() as transaction:
        transaction.attempts.add([planned, an_attempt("j-1", 2), an_attempt("j-2", 1)])
        transaction.attempts.add([])
    with store.write() as transaction:
        transaction.attempts.save([replace(ended, allocation=replace(ALLOCATION, model="H200"))])
    with store.read() as transaction:
        assert transaction.attempts.get({"j-1.1"}) == {"j-1.1": ended}
        assert transaction.attempts.of_job("j-1") == [ended, an_attempt("j-1", 2)]
        assert transaction.attempts.of_job("j-9") == []
        wanted = {"j-1.2", "j-2.1", "j-2.9", "nonsense", "j-1.٢"}
        assert set(transaction.attempts.get(wanted)) == {"j-1.2", "j-2.1"}
        assert transaction.attempts.get([]) == {}


def test_an_attempt_is_added_once_and_needs_its_job(store: Store) -> None:
    added(store, {})
    with store.write() as transaction:
        transaction.attempts.add([an_attempt("j-1", 1)])
    for wrong in (an_attempt("j-1", 1), an_attempt("j-2", 1)):
        with pytest.raises(StoreConflict), store.write() as transaction:
            transaction.attempts.add([an_attempt("j-1", 2), wrong])
    with pytest.raises(StoreConflict, match="1 of 2 attempts"), store.write() as transaction:
        transaction.attempts.save([an_attempt("j-1", 1, exit_code=1), an_attempt("j-1", 7)])
    with store.read() as transaction:
        assert transaction.attempts.of_job("j-1") == [an_attempt("j-1", 1)]


def test_all_allocations_come_in_the_order_of_planning(store: Store) -> None:
    records = added(store, *({} for _ in range(1500)))
    with store.write() as transaction:
        transaction.attempts.add(
            [an_attempt(record.job.id, 1, planned_at=float(-n // 2)) for n, record in enumerate(records)]
        )
    with store.read() as transaction:
        audit = list(transaction.attempts.all_allocations())
        every_id = [attempt.id for attempt in audit]
        assert len(transaction.attempts.get(every_id)) == 1500
    assert [(attempt.planned_at, int(attempt.job_id[2:])) for attempt in audit] == sorted(
        (float(-n // 2), n + 1) for n in range(1500)
    )
