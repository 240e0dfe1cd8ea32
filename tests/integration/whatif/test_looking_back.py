"""Looking back in a process of its own gives the same answers and the same refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import NotFound
from corral.control.live.journal import JournalBroken
from corral.core.model import JobState
from corral.server.whatif.time_travel import _answered_elsewhere, answer
from tests.unit.server.whatif.test_time_travel import question

pytestmark = pytest.mark.slow


def test_the_other_process_says_the_same() -> None:
    asked = question(150.0)
    reported = _answered_elsewhere(asked)
    assert reported == answer(asked)
    assert reported.job.state is JobState.QUEUED
    assert reported.mentioned.keys() == {"j-2"}


def test_refusals_are_the_same_as_in_simulations() -> None:
    with pytest.raises(NotFound, match="did not exist then") as refused:
        _answered_elsewhere(question(120.0))
    assert refused.value.field == "at"
    broken = question(150.0)
    broken = replace(broken, run=[replace(cycle, changes=b"?") for cycle in broken.run])
    with pytest.raises(JournalBroken, match="not readable"):
        _answered_elsewhere(broken)
