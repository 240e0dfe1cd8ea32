"""Jobs as lists, in every store: pages, orders, filters and counts."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from corral.control.ports import Store
from corral.control.records import JobFilter, JobRecord, JobSpec
from corral.core.model import CLUSTER_LABEL, Allocation, Grant, Job, JobKind, JobState, Node, Request
from tests.contract.store_samples import a_record, added, an_attempt, ids_of

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


def test_invalid_cursor_is_refused(store: Store) -> None:
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
