"""Looking back in a process of its own gives the same answers and the same refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import NotFound
from corral.control.journal import JournalBroken
from corral.core.model import Job, JobState
from corral.server.timetravel import Question, _answered_elsewhere, answer, cycle_view
from tests.unit.control.test_timetravel import story

JOB = Job(id="j-3", name="name", user="ann", state=JobState.RUNNING, created_at=130.0, queued_at=130.0)


def question(at: float) -> Question:
    recorded = story()
    return Question(run=recorded.run_until(at), at=at, tail=recorded.tail, job=JOB)


def test_the_other_process_says_the_same() -> None:
    asked = question(150.0)
    told = _answered_elsewhere(asked)
    assert told == answer(asked)
    assert told.job.state is JobState.QUEUED
    assert told.mentioned.keys() == {"j-2"}


def test_what_is_refused_there_is_refused_here() -> None:
    with pytest.raises(NotFound, match="did not exist then") as refused:
        _answered_elsewhere(question(120.0))
    assert refused.value.field == "at"
    broken = question(150.0)
    broken = replace(broken, run=[replace(cycle, changes=b"?") for cycle in broken.run])
    with pytest.raises(JournalBroken, match="not readable"):
        _answered_elsewhere(broken)


def test_it_says_which_cycle_it_is_and_how_exact() -> None:
    told = answer(question(150.0))
    view = cycle_view(told)
    assert (view.id, view.exact) == (2, True)
    assert view.words == ("as of cycle 2 at 1970-01-01 00:01:41 UTC, with what happened up to 1970-01-01 00:02:10 UTC")
    vague = cycle_view(replace(told, uncertain=2))
    assert not vague.exact
    assert vague.words.endswith("; 2 later changes may have been made by then and are not in it")
