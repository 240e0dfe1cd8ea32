"""The comparisons of each ordering policy, for one user's jobs and between users, and its texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Job, Queue
from corral.core.scheduling.explain.reasons import line_order, place_text
from corral.core.scheduling.ordering import POLICIES
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.waiting_lines import line_of
from tests.unit.core.builders import snapshot_of, waiting

RULES = OrderingRules()
#: two users: the first jobs of both differ in all that policies look at
ANN_FIRST = waiting(1, at=10.0, user="ann", priority=5, gpus=4)
ANN_URGENT = waiting(2, at=20.0, user="ann", priority=1, gpus=1)
BOB_OLD = waiting(3, at=5.0, user="bob", priority=5, gpus=1)
BOB_LATER = waiting(4, at=30.0, user="bob", priority=5, gpus=1, user_order=-1)


def order(policy: str, *jobs: Job) -> list[int]:
    snapshot = snapshot_of(Queue(name="default", policy=policy), *jobs)
    return [job.serial for job in line_order(snapshot, line_of(jobs[0]), 100.0)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", [3, 1, 2, 4]),
        ("priority", [2, 3, 1, 4]),
        # equal scores: the first of each user's own sequence by priority and age; bob has moved a job to the front
        ("fair-share", [2, 1, 4, 3]),
    ],
)
def test_each_policy_has_its_own_order(policy: str, expected: list[int]) -> None:
    assert order(policy, ANN_FIRST, ANN_URGENT, BOB_OLD, BOB_LATER) == expected


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_pin_outranks_every_policy(policy: str) -> None:
    pinned = waiting(5, at=90.0, user="bob", priority=9, gpus=8, pinned_at=50.0)
    later = waiting(6, at=91.0, user="ann", priority=9, gpus=8, pinned_at=60.0)
    assert order(policy, ANN_FIRST, BOB_OLD, pinned, later)[:2] == [6, 5]
    snapshot = snapshot_of(Queue(name="default", policy=policy), pinned)
    assert place_text(snapshot, pinned, 0.0) == "pinned by an operator"


@pytest.mark.parametrize(
    ("policy", "job", "text"),
    [
        ("priority", ANN_URGENT, "priority 1, then age"),
        ("fair-share", ANN_FIRST, "score 2.5 of ann, then priority 5 and age"),
        ("fair-share", BOB_LATER, "score 2.5 of bob, moved by its owner, then priority 5 and age"),
    ],
)
def test_a_policy_says_why_a_job_has_its_place(policy: str, job: Job, text: str) -> None:
    assert POLICIES[policy].place_text(job, 2.5, RULES) == text


def test_only_policies_with_a_rank_can_preempt_by_their_order() -> None:
    assert {name for name, policy in POLICIES.items() if policy.rank is not None} == {
        "priority",
        "shortest",
        "weighted",
    }


#: when it was submitted, whose it is, and its priority
_JOBS = st.lists(
    st.tuples(st.sampled_from([0.0, 10.0, 20.0]), st.sampled_from(["ann", "bob"]), st.integers(1, 3)),
    min_size=1,
    max_size=8,
)


@given(specs=_JOBS, policy=st.sampled_from(sorted(POLICIES)))
def test_every_order_is_total_and_does_not_depend_on_the_sequence_of_changes(
    specs: list[tuple[float, str, int]], policy: str
) -> None:
    jobs = [
        waiting(number, at=at, user=user, priority=priority, gpus=1)
        for number, (at, user, priority) in enumerate(specs, 1)
    ]
    found = order(policy, *jobs)
    assert sorted(found) == [job.serial for job in jobs]
    assert order(policy, *reversed(jobs)) == found
