"""Jobs and attempts in a store, on every database."""

from __future__ import annotations

import base64
import json
import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from corral.control.ports import NameTaken, Store, StoreConflict
from corral.control.records import JobFilter, JobRecord, JobSpec
from corral.core.model import CLUSTER_LABEL, Allocation, EndReason, Grant, Job, JobKind, JobState, Node, Request
from tests.contract.store_samples import ALLOCATION, BUSY_JOB, SPEC, a_record, added, an_attempt, ids_of

pytest_plugins = ("tests.servers.fixtures",)

EVERYTHING = JobFilter()
NEW = "-created_at"


def pages(store: Store, sort: str, *, where: JobFilter = EVERYTHING, limit: int = 3) -> list[list[str]]:
    """The ids on each page, by following the cursors to the end."""
    result, cursor = [], None
    while True:
        with store.read() as transaction:
            page = transaction.jobs.page(where, sort=sort, cursor=cursor, limit=limit)
        result.append(ids_of(page.items))
        cursor = page.next_cursor
        if cursor is None:
            return result


# ------------------------------------------------------------------------------------------------ one job


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


def test_what_is_no_id_of_a_job_finds_nothing(store: Store) -> None:
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


def test_which_names_a_user_has_taken(store: Store) -> None:
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


def test_pages_over_equal_keys_show_each_job_once_in_order(store: Store) -> None:
    chance = random.Random(7)
    jobs = [
        {
            "name": f"{chance.choice('aBcéÄ数')}-{n}",
            "priority": chance.randint(1, 3),
            "created_at": chance.randint(1, 3) / 3,
        }
        for n in range(20)
    ]
    records = added(store, *jobs)

    for field in ("id", "name", "priority", "created_at"):
        ordered = ids_of(sorted(records, key=lambda record: _sort_key(record, field)))
        for sort, expected in ((field, ordered), (f"-{field}", ordered[::-1])):
            seen = pages(store, sort)
            assert [len(page) for page in seen] == [3] * 6 + [2]
            assert [job_id for page in seen for job_id in page] == expected, sort


def _sort_key(record: JobRecord, field: str) -> tuple[Any, int]:
    number = int(record.job.id[2:])
    return (number if field == "id" else getattr(record.job, field), number)


def test_the_last_page_says_so_even_when_it_is_full(store: Store) -> None:
    added(store, {}, {}, {})
    assert pages(store, "id", limit=3) == [["j-1", "j-2", "j-3"]]
    assert pages(store, "id", limit=2) == [["j-1", "j-2"], ["j-3"]]
    assert pages(store, NEW, where=JobFilter(user="nobody")) == [[]]


def test_a_cursor_stands_still_while_jobs_come_and_go(store: Store) -> None:
    added(store, {}, {}, {}, {})
    with store.write() as transaction:
        first = transaction.jobs.page(EVERYTHING, sort="-id", cursor=None, limit=2)
        assert ids_of(first.items) == ["j-4", "j-3"]
        transaction.jobs.add([a_record("j-9")])
        transaction.jobs.delete(["j-3"])
        second = transaction.jobs.page(EVERYTHING, sort="-id", cursor=first.next_cursor, limit=2)
        assert ids_of(second.items) == ["j-2", "j-1"]


FILTERS: list[tuple[JobFilter, list[int]]] = [
    (JobFilter(states=(JobState.QUEUED,)), [2, 3]),
    (JobFilter(states=(JobState.QUEUED, JobState.FAILED)), [2, 3, 4]),
    (JobFilter(kinds=(JobKind.WORKBENCH,)), [1, 4]),
    (JobFilter(kinds=(JobKind.WORKBENCH, JobKind.TRAINING)), [1, 2, 3, 4]),
    (JobFilter(user="bob"), [3, 4]),
    (JobFilter(queue="night"), [2]),
    (JobFilter(name_contains="NET"), [1, 2]),
    (JobFilter(name_contains="_5"), [2]),
    (JobFilter(name_contains="%"), [3]),
    (JobFilter(name_contains="模型"), [4]),
    (JobFilter(name_contains="\\"), []),
    (JobFilter(name_contains="\0"), []),
    (JobFilter(user="bob", states=(JobState.QUEUED,), name_contains="100"), [3]),
    (JobFilter(user="ada", queue="night", kinds=(JobKind.WORKBENCH,)), []),
    (JobFilter(user="' OR 1=1 --"), []),
]


def test_filters(store: Store) -> None:
    added(
        store,
        {"name": "ResNet50", "kind": JobKind.WORKBENCH},
        {"name": "net_50", "state": JobState.QUEUED, "queue": "night"},
        {"name": "100%", "state": JobState.QUEUED, "user": "bob"},
        {"name": "模型", "state": JobState.FAILED, "user": "bob", "kind": JobKind.WORKBENCH},
    )
    for where, expected in FILTERS:
        found = [job_id for page in pages(store, "id", where=where, limit=1) for job_id in page]
        assert found == [f"j-{number}" for number in expected], where


def test_jobs_of_a_cluster_are_those_that_ran_there_or_wait_and_may(store: Store) -> None:
    def placed(node: str) -> Allocation:
        return Allocation(model="A10", grants=(Grant(node=node, gpus=(f"{node}-gpu0",), gpu_milli=1000),))

    bound = Request(gpus=1, labels=((CLUSTER_LABEL, "hpc"),))
    added(
        store,
        {"state": JobState.RUNNING, "attempt": 1},
        {"state": JobState.COMPLETED, "attempt": 2},
        {"state": JobState.QUEUED, "request": bound},
        {"state": JobState.QUEUED, "attempt": 1},
        {"state": JobState.QUEUED, "request": Request(gpus=1, models=("A10", "H100"))},
        {"state": JobState.STOPPED, "request": replace(bound, labels=((CLUSTER_LABEL, "hpc2"),))},
    )
    with store.write() as transaction:
        transaction.fleet.save_nodes([Node(id="far", cluster="hpc"), Node(id="near", cluster="local")])
        transaction.attempts.add(
            [
                an_attempt("j-1", 1, allocation=placed("far")),
                an_attempt("j-2", 1, allocation=placed("far")),
                an_attempt("j-2", 2, allocation=placed("near")),
                an_attempt("j-4", 1, allocation=placed("near")),
            ]
        )
    expected = {("hpc", "A10"): "1345", ("local", "H100"): "245", ("local", "A100"): "24", ("none", "A10"): "45"}
    for (cluster, model), numbers in expected.items():
        where = JobFilter(cluster=cluster, cluster_models=(model,))
        assert pages(store, "id", where=where, limit=9) == [[f"j-{n}" for n in numbers]], cluster


MORE_FILTERS: list[tuple[JobFilter, list[int]]] = [
    (JobFilter(users=("bob", "cas")), [3, 4, 5, 6]),
    (JobFilter(user="bob", users=("cas",)), []),
    (JobFilter(name_prefix="net"), [2]),
    (JobFilter(name_prefix="Net"), []),
    (JobFilter(text="NET"), [1, 2]),
    (JobFilter(text="bo"), [3, 4]),
    (JobFilter(text="j-6"), [6]),
    (JobFilter(text="5"), [1, 2, 5]),
    (JobFilter(text="0%"), [3]),
    (JobFilter(since=20.0), [2, 3, 4, 5, 6]),
    (JobFilter(since=20.0, until=40.0), [2, 3]),
    (JobFilter(until=10.0), []),
    (JobFilter(array="grid"), [5]),
    (JobFilter(array="grid", users=("ada",)), []),
    (JobFilter(array="gri"), []),
]


def test_lists_for_people_who_look_for_something(store: Store) -> None:
    """By several users, the beginning of a name, a text, a time, an array: in every order, and counted alike."""
    added(
        store,
        {"name": "ResNet50", "created_at": 10.0},
        {"name": "net_50", "created_at": 20.0, "state": JobState.QUEUED},
        {"name": "100%", "created_at": 30.0, "user": "bob"},
        {"name": "模型", "created_at": 40.0, "user": "bob", "state": JobState.FAILED},
    )
    with store.write() as transaction:
        ids = transaction.jobs.next_ids(2)
        jobs = [Job(id=ids[0], name="grid-5", user="cas", created_at=50.0, priority=9)]
        # Called like a member of an array, and none.
        jobs.append(Job(id=ids[1], name="grid-7", user="cas", created_at=60.0, priority=1))
        specs = [JobSpec(command=("true",), array_name="grid", array_index=5), JobSpec(command=("true",))]
        transaction.jobs.add([JobRecord(job=job, spec=spec) for job, spec in zip(jobs, specs, strict=True)])
    for where, expected in MORE_FILTERS:
        wanted = [f"j-{number}" for number in expected]
        for sort in ("id", "name", "priority", "created_at"):
            upwards = [job_id for page in pages(store, sort, where=where, limit=2) for job_id in page]
            downwards = [job_id for page in pages(store, f"-{sort}", where=where, limit=2) for job_id in page]
            assert upwards == downwards[::-1], (where, sort)
            assert sorted(upwards) == wanted, (where, sort)
        with store.read() as transaction:
            assert sum(transaction.jobs.counts(where).values()) == len(expected), where


def test_counts_are_by_state_and_leave_out_what_there_is_not(store: Store) -> None:
    added(store, {"state": JobState.QUEUED}, {"state": JobState.QUEUED, "user": "bob"}, {"state": JobState.FAILED})
    with store.read() as transaction:
        assert transaction.jobs.counts() == {"queued": 2, "failed": 1}
        assert transaction.jobs.counts(JobFilter(user="bob")) == {"queued": 1}
        assert transaction.jobs.counts(JobFilter(text="nothing")) == {}


def _packed(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


NO_CURSORS = [
    "",
    "garbage",
    "§",
    "A",
    "AAAA" * 1000,
    _packed(None),
    _packed([]),
    _packed(["priority", 5]),
    _packed(["priority", "5", 1]),
    _packed(["priority", True, 1]),
    _packed(["priority", 5, 1.5]),
    _packed(["priority", 10**30, 1]),
    _packed(["priority", 5, 10**30]),
    _packed(["priority", 5, 1, 1]),
    _packed([5, 5, 1]),
]


def test_what_is_no_cursor_is_refused(store: Store) -> None:
    added(store, {})
    with store.read() as transaction:
        for cursor in NO_CURSORS:
            with pytest.raises(ValueError, match="not a cursor"):
                transaction.jobs.page(EVERYTHING, sort="priority", cursor=cursor, limit=5)


def test_a_cursor_is_for_its_own_sort(store: Store) -> None:
    added(store, {}, {})
    with store.read() as transaction:
        cursor = transaction.jobs.page(EVERYTHING, sort="priority", cursor=None, limit=1).next_cursor
        for other in ("-priority", "created_at", "id"):
            with pytest.raises(ValueError, match=f"made for sort 'priority', not for '{other}'"):
                transaction.jobs.page(EVERYTHING, sort=other, cursor=cursor, limit=1)


def test_an_unknown_sort_is_refused_with_those_that_exist(store: Store) -> None:
    with store.read() as transaction:
        for sort in ("", "-", "version", "--id", "id desc", "ID"):
            with pytest.raises(ValueError, match="known: id, name, priority, created_at"):
                transaction.jobs.page(EVERYTHING, sort=sort, cursor=None, limit=1)


def test_a_page_has_at_least_one_job(store: Store) -> None:
    with store.read() as transaction, pytest.raises(ValueError, match="limit must be at least 1"):
        transaction.jobs.page(EVERYTHING, sort="id", cursor=None, limit=0)


def test_ten_thousand_jobs_page_by_page(store: Store) -> None:
    users = [f"user-{n}" for n in range(7)]
    with store.write() as transaction:
        ids = transaction.jobs.next_ids(10_000)
        transaction.jobs.add(
            [
                a_record(
                    job_id, user=users[n % 7], priority=n % 5, created_at=float(n // 50), state=list(JobState)[n % 8]
                )
                for n, job_id in enumerate(ids)
            ]
        )
    by_time = [job_id for page in pages(store, "-created_at", limit=500) for job_id in page]
    assert by_time == sorted(ids, key=lambda job_id: int(job_id[2:]), reverse=True)
    by_priority = [job_id for page in pages(store, "priority", limit=777) for job_id in page]
    assert by_priority == sorted(ids, key=lambda job_id: ((int(job_id[2:]) - 1) % 5, int(job_id[2:])))
    of_one = [job_id for page in pages(store, "name", where=JobFilter(user="user-3"), limit=100) for job_id in page]
    assert of_one == sorted(ids[3::7], key=lambda job_id: f"name-of-{job_id}")
    with store.read() as transaction:
        assert len(transaction.jobs.live()) == 6250
        assert sum(transaction.jobs.counts().values()) == 10_000


# ------------------------------------------------------------------------------------------------ attempts


def test_the_course_of_an_attempt_is_kept_and_its_allocation_never_changes(store: Store) -> None:
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
