"""Values go into the store and come back the same, whatever they hold and whichever fields they have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.records import Function, JobSpec, Scope
from corral.core.model import Allocation, Grant, Job, JobKind, Request
from corral.stores.database import row_codec
from corral.stores.jobs.jobs import decode_job, encode_job
from tests.contract.store_samples import BUSY_JOB
from tests.unit.searching import DEAR
from tests.unit.stores.strategies import MAPPINGS, TEXTS, every_field

REQUESTS = every_field(Request)
GRANTS = every_field(Grant)
ALLOCATIONS = every_field(Allocation, grants=st.lists(GRANTS, max_size=4).map(tuple))
SPECS = every_field(JobSpec, env=MAPPINGS, labels=MAPPINGS)
JOBS = every_field(
    Job,
    id=st.integers(1, 10**18 - 1).map(row_codec.job_id),
    request=REQUESTS,
    allocation=st.none() | ALLOCATIONS,
)


@given(JOBS)
def test_jobs(job: Job) -> None:
    assert decode_job(encode_job(job)) == job


@DEAR
@given(SPECS)
def test_specs(spec: JobSpec) -> None:
    text = row_codec.encode_spec(spec)
    assert row_codec.decode_spec(text) == spec
    assert text.isascii()
    assert "\0" not in text


@given(ALLOCATIONS)
def test_allocations(allocation: Allocation) -> None:
    text = row_codec.to_json(row_codec.dump_allocation(allocation))
    assert row_codec.load_allocation(row_codec.from_json(text)) == allocation


@given(st.lists(TEXTS), st.lists(st.sampled_from([*JobKind, *Function, *Scope])))
def test_names(texts: list[str], words: list[JobKind | Function | Scope]) -> None:
    text = row_codec.encode_names(texts)
    assert row_codec.decode_names(str, text) == tuple(texts)
    assert text.isascii()
    for kind in (JobKind, Function, Scope):
        mine = tuple(word for word in words if isinstance(word, kind))
        assert row_codec.decode_names(kind, row_codec.encode_names(mine)) == mine


@given(TEXTS)
def test_any_text_can_be_made_storable_and_ordinary_text_stays(text: str) -> None:
    stored = row_codec.storable(text)
    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert row_codec.storable(stored) == stored
    if "\0" not in text and text.encode("utf-8", "ignore").decode() == text:
        assert stored == text


@given(st.text() | st.from_regex(r"j-[0-9]{1,20}(\.[0-9]{1,12})?\n?", fullmatch=True))
def test_only_ids_in_their_one_spelling_are_ids(text: str) -> None:
    number = row_codec.job_number(text)
    assert number is None or row_codec.job_id(number) == text
    key = row_codec.attempt_key(text)
    assert key is None or key[0] > 0


def test_ids() -> None:
    assert row_codec.job_number("j-12") == 12
    assert row_codec.attempt_key("j-12.3") == (12, 3)
    assert [row_codec.attempt_key(text) for text in ("j-12", "j-0.1", "j-1.", "j-1.-1", ".1", "j-1.1.1")] == [None] * 6
    with pytest.raises(ValueError, match="'x' is not the id of a job"):
        row_codec.required_job_number("x")


def test_an_empty_field_does_not_become_the_models_default() -> None:
    frugal = replace(BUSY_JOB, grace_seconds=0.0, max_retries=0, request=Request(nodes=0), message="")
    assert decode_job(encode_job(frugal)) == frugal


def test_a_plain_job_is_small() -> None:
    assert len(encode_job(Job(id="j-1", name="n", user="u"))[-1]) < 80


def test_specs_of_tasks_from_earlier_versions() -> None:
    stored = '{"command":["hold"],"labels":{"task":"exp","mode":"auto","kept":"yes"}}'
    spec = JobSpec(command=("hold",), labels={"kept": "yes"}, task="exp", task_mode="auto")
    assert row_codec.decode_spec(stored) == spec
    assert row_codec.decode_spec(row_codec.encode_spec(spec)) == spec


def test_equal_requests_are_one_object() -> None:
    """200,000 waiting jobs have a few requests."""
    request = Request(gpus=2, models=("A100", "H100"), labels=(("rack", "r1"),), cpu_milli=4000)
    text = row_codec.to_json(row_codec.dump_request(request))
    first, second = (row_codec.load_request(row_codec.from_json(text)) for _ in range(2))
    assert first is second
    assert first == request
