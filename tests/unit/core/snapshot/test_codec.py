"""Core values survive being written down."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import (
    Allocation,
    EndReason,
    Gpu,
    Grant,
    Job,
    JobKind,
    JobState,
    Node,
    Prediction,
    Queue,
    Request,
)
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.core.scheduling.ordering.cost import OrderingRules, Weights
from corral.core.scheduling.plan.plan import Plan, PlannedStart, Start
from corral.core.snapshot.changes import (
    Change,
    DropJob,
    DropNode,
    DropQueue,
    PutJob,
    PutLastNode,
    PutNode,
    PutQueue,
    PutQuota,
    PutRules,
    PutScore,
)
from corral.core.snapshot.codec import dumps, from_plain, to_plain
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.journal import Digest, decode_changes, decode_plan, encode_changes, encode_plan
from corral.core.snapshot.waiting_lines import LineKey

times = st.floats(0, 1e10)
texts = st.text(max_size=12)
labels = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
grants = st.builds(Grant, node=texts, gpus=st.lists(texts, max_size=2).map(tuple), gpu_milli=st.integers(1, 1000))
allocations = st.builds(Allocation, grants=st.lists(grants, max_size=3).map(tuple), model=texts)
requests = st.builds(Request, nodes=st.integers(1, 9), gpus=st.integers(0, 9), labels=labels)
gpus = st.builds(Gpu, memory_bytes=st.integers(0, 2**60))
nodes = st.builds(
    Node,
    gpus=st.lists(gpus, max_size=2).map(tuple),
    labels=labels,
    load=st.none() | st.floats(0, 1),
    cpu_milli=st.integers(0),
)
jobs = st.builds(
    Job,
    id=st.integers(1, 10**12).map(lambda n: f"j-{n}"),
    request=requests,
    created_at=times,
    queued_at=st.none() | times,
    pinned_at=st.none() | times,
    time_limit_seconds=st.none() | times,
    grace_seconds=times,
    allocation=st.none() | allocations,
    allocated_at=st.none() | times,
    started_at=st.none() | times,
    ended_at=st.none() | times,
    stopping_for=st.none() | st.sampled_from(EndReason),
    end_reason=st.none() | st.sampled_from(EndReason),
    exit_code=st.none() | st.integers(-255, 255),
    not_before=times,
    predicted=st.none() | st.builds(Prediction, p50_seconds=times, p90_seconds=times, samples=st.integers(1, 99)),
    saved_seconds=times,
)
orderings = st.builds(
    OrderingRules, weights=st.builds(Weights, age=st.floats(0.1, 10), size=st.floats(0, 3)), ageing=st.floats(0.1, 100)
)
queues = st.builds(Queue, weight=st.floats(0.1, 10), max_seconds=st.none() | times)
quotas = st.builds(Quota)
scores = st.builds(Score, value=times, usage=times, at=times)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(PutNode, node=nodes),
    st.builds(DropNode, id=texts),
    st.builds(PutJob, job=jobs),
    st.builds(DropJob, id=texts),
    st.builds(PutQueue, queue=queues),
    st.builds(DropQueue, name=texts),
    st.builds(PutQuota, user=texts, kind=st.sampled_from(JobKind), quota=quotas),
    st.builds(PutScore, user=texts, model=texts, score=scores),
    st.builds(
        PutRules,
        limits=st.builds(Limits, max_seconds=st.none() | times),
        score_time_constant=times,
        ordering=orderings,
    ),
    st.builds(PutLastNode, id=texts),
)
line_keys = st.builds(LineKey, texts, texts, st.booleans())
plans = st.builds(
    Plan,
    at=times,
    starts=st.lists(st.builds(Start, job_id=texts, allocation=allocations), max_size=2).map(tuple),
    planned=st.lists(
        st.builds(
            PlannedStart,
            job_id=texts,
            line=line_keys,
            at=times | st.just(float("inf")),
            nodes=st.lists(texts, max_size=2).map(tuple),
            held=allocations,
        ),
        max_size=2,
    ).map(tuple),
    wake_at=st.none() | times,
)


@given(st.one_of(nodes, jobs, queues, quotas, scores, allocations, requests, changes))
def test_every_value_comes_back_equal(value: Any) -> None:
    text = json.dumps(to_plain(value))
    back = from_plain(type(value), json.loads(text))
    assert back == value
    assert dumps(back) == dumps(value)


@given(st.one_of(nodes, jobs, queues, quotas, scores, allocations, requests, changes))
def test_the_text_is_that_of_the_plain_data(value: Any) -> None:
    """Digests in stored journals were made from this text."""
    text = json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert [dumps(value), dumps(value)] == [text, text]


@pytest.mark.parametrize(
    "value", [60.0, -0.0, 0.1, 1e300, math.inf, -math.inf, True, None, "ü\n", {"b": 1, "a": (2.0,)}]
)
def test_the_text_of_a_single_value_is_that_of_the_plain_data(value: Any) -> None:
    plain = [to_plain(value)]
    assert dumps([value]) == json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(st.lists(changes, max_size=5))
def test_texts_of_the_digest_are_the_entry_of_the_journal(history: list[Change]) -> None:
    assert decode_changes(encode_changes(history, Digest().add(history))) == history


@given(st.lists(changes, max_size=5))
def test_changes_come_back_equal(history: list[Change]) -> None:
    assert list(decode_changes(encode_changes(history))) == history


@given(plans)
def test_plans_come_back_equal(plan: Plan) -> None:
    assert decode_plan(encode_plan(plan)) == plan


@given(st.lists(changes, max_size=6), st.integers(0, 5))
def test_the_digest_is_of_the_content_not_of_the_way(history: list[Change], place: int) -> None:
    once, again = Digest(), Digest()
    once.add(history)
    again.add(history[:place])
    again.add(history)
    assert once.hex() == again.hex()


def test_fields_with_their_default_are_left_out() -> None:
    plain = to_plain(Job(id="j-1", name="name", user="ann"))
    assert plain == {"id": "j-1", "name": "name", "user": "ann"}


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (Job, {"id": "j-1"}),
        (Job, {"id": "j-1", "name": "name", "user": "ann", "colour": "red"}),
        (Job, {"id": "j-1", "name": "name", "user": "ann", "state": "asleep"}),
        (Score, {"value": "much"}),
    ],
)
def test_anything_else_is_refused(kind: type[Any], plain: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_plain(kind, plain)


def test_equal_values_give_equal_text() -> None:
    assert dumps(Score(value=1, at=60)) == dumps(Score(value=1.0, at=60.0))
    back = from_plain(Score, json.loads(dumps(Score(value=1, at=60))))
    assert isinstance(back.at, float)


def test_a_state_is_written_as_its_word() -> None:
    assert to_plain(Job(id="j-1", name="name", user="ann", state=JobState.RUNNING))["state"] == "running"
