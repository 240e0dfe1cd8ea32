"""Answers about the past: their cycle, and how exact they are."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import Job, JobState
from corral.server.whatif.time_travel import Question, answer, cycle_view
from tests.unit.control.whatif.test_time_travel import story

JOB = Job(id="j-3", name="name", user="ann", state=JobState.RUNNING, created_at=130.0, queued_at=130.0)


def question(at: float) -> Question:
    recorded = story()
    return Question(run=recorded.run_until(at), at=at, tail=recorded.tail, job=JOB)


def test_answer_names_its_cycle_and_its_precision() -> None:
    found = answer(question(150.0))
    view = cycle_view(found)
    assert (view.id, view.exact) == (2, True)
    assert view.words == ("as of cycle 2 at 1970-01-01 00:01:41 UTC, with what happened up to 1970-01-01 00:02:10 UTC")
    vague = cycle_view(replace(found, uncertain=2))
    assert not vague.exact
    assert vague.words.endswith("; 2 later changes may have been made by then and are not in it")
