"""Attempts that the controller has forgotten: the accounting is asked for them, and only they wait for an
answer."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

import pytest

from corral.control.ports import EngineUnavailable, Instance, LaunchOrder
from corral.core.model import EndReason
from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.tracking import AT_ONCE, AWAY_SECONDS, DAY, LOST_SECONDS, PAUSE_SECONDS, JobTracker
from corral.engines.slurm.slurm_api.commands import SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob
from tests.unit.engines.slurm.unused_slurm import UnusedSlurm

NOW = 1_700_000_000.0
#: long after they were given to Slurm
LATER = NOW + 3600.0
MARK = "corral-x-"


class Accounting(UnusedSlurm):
    """A Slurm whose controller knows nothing, and whose accounting answers as configured."""

    def __init__(self) -> None:
        self.kept: list[SlurmJob] = []
        self.problem: Exception | None = None
        self.asked: list[object] = []

    def jobs(self) -> list[SlurmJob]:
        return []

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        self._note(list(job_ids))
        return [job for job in self.kept if job.id in job_ids]

    def named(self, name: str, since: float) -> list[SlurmJob]:
        self._note((name, since))
        return [job for job in self.kept if job.name == name]

    def _note(self, question: object) -> None:
        self.asked.append(question)
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(str(tmp_path))
    made.prepare()
    return made


def given(layout: Layout, number: int) -> Attempt:
    order = LaunchOrder(
        attempt_id=f"j-{number}.1",
        job_id=f"j-{number}",
        user="ann",
        command=("true",),
        instances=(Instance(rank=0, node="node1", gpu_ids=(), gpu_indexes=()),),
    )
    made = slurm_attempt.create(layout, order, NOW, JobOwner(uid=1001, name="ann"))
    made.secret = "5eed"
    slurm_attempt.note_job(layout, made, number)
    return made


def over(number: int, state: str = "TIMEOUT") -> SlurmJob:
    name = f"{MARK}j-{number}.1-5eed"
    return SlurmJob(id=number, name=name, state=state, nodes=("node1",), started_at=NOW, ended_at=NOW + 9)


def running(number: int) -> SlurmJob:
    return SlurmJob(id=number, uid=1001, state="RUNNING", nodes=("node1",), started_at=NOW)


def following(accounting: Accounting, layout: Layout) -> JobTracker:
    return JobTracker(accounting, layout, MARK, lambda attempt, job_id: None, contextlib.nullcontext())


def reason(attempt: Attempt) -> EndReason | None:
    status = attempt.status()
    return status.reason if status is not None else None


def test_only_jobs_that_are_missing_are_looked_up(layout: Layout) -> None:
    accounting, gone, there = Accounting(), given(layout, 7), given(layout, 8)
    accounting.kept = [over(7), over(9)]
    follow = following(accounting, layout).follow
    follow([gone, there], [running(8)], LATER)
    follow([gone, there], [running(8)], LATER + 10)
    assert accounting.asked == [[7], [7]]
    assert (reason(gone), there.is_over) == (EndReason.TIMED_OUT, False)


def test_accounting_that_does_not_answer_delays_no_other_attempt(layout: Layout) -> None:
    accounting, gone, there = Accounting(), given(layout, 7), given(layout, 8)
    accounting.problem = SlurmUnavailable("sacct did not answer within 20 s")
    follow = following(accounting, layout).follow
    for after in range(0, 60, 2):
        follow([gone, there], [running(8)], LATER + after)
    assert (gone.is_over, there.is_over) == (False, False)
    assert there.seen is not None
    assert there.seen.state == "RUNNING"
    # nor are they asked at each look
    assert len(accounting.asked) == 60 / PAUSE_SECONDS
    accounting.problem, accounting.kept = None, [over(7)]
    for after in (100, 110):
        follow([gone], [], LATER + after)
    assert reason(gone) is EndReason.TIMED_OUT


@pytest.mark.parametrize(
    ("problem", "patience"),
    [
        (None, LOST_SECONDS),
        (SlurmRefused("Slurm accounting storage is disabled"), LOST_SECONDS),
        (SlurmUnavailable("away"), AWAY_SECONDS),
    ],
)
def test_a_job_that_slurm_no_longer_knows_is_lost_in_the_end(
    layout: Layout, problem: Exception | None, patience: float
) -> None:
    accounting, gone = Accounting(), given(layout, 7)
    accounting.problem = problem
    follow = following(accounting, layout).follow
    follow([gone], [], LATER)
    follow([gone], [], LATER + patience)
    assert not gone.is_over
    follow([gone], [], LATER + patience + 1)
    assert reason(gone) is EndReason.LOST


def test_many_are_looked_up_in_several_questions(layout: Layout) -> None:
    accounting = Accounting()
    missing = [given(layout, number) for number in range(1, AT_ONCE + 3)]
    following(accounting, layout).follow(missing, [], LATER)
    assert accounting.asked == [list(range(1, AT_ONCE + 1)), [AT_ONCE + 1, AT_ONCE + 2]]


def test_a_job_without_a_number_is_looked_for_by_its_name(layout: Layout) -> None:
    accounting, sent = Accounting(), given(layout, 7)
    sent.job_id = None
    accounting.kept = [over(7)]
    job_of = following(accounting, layout).job_of
    found = job_of(sent)
    assert found is not None
    assert (found.id, accounting.asked) == (7, [("corral-x-j-7.1-5eed", NOW - DAY)])
    # Sent again, it could run twice: not before it is known.
    accounting.problem = SlurmUnavailable("away")
    with pytest.raises(EngineUnavailable, match="away"):
        job_of(sent)
    accounting.problem = SlurmRefused("Slurm accounting storage is disabled")
    assert job_of(sent) is None


def test_an_id_that_a_controller_gave_again_after_a_crash_is_another_job(layout: Layout) -> None:
    accounting, gone = Accounting(), given(layout, 7)
    other = SlurmJob(id=7, uid=1001, name=f"{MARK}j-9.1-f00d", state="RUNNING", nodes=("node1",), started_at=NOW)
    follow = following(accounting, layout).follow
    follow([gone], [other], LATER)
    assert gone.seen is None
    follow([gone], [other], LATER + LOST_SECONDS + 1)
    assert reason(gone) is EndReason.LOST
