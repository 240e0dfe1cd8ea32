"""A damaged record of an attempt concerns that attempt only, and its Slurm job is found again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, Instance, LaunchOrder
from corral.core.model import EndReason
from corral.engines.slurm.attempts import run_directory, slurm_attempt
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.tracking import JobTracker
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob
from corral.engines.slurm.slurm_attempts import SlurmAttempts
from tests.unit.engines.slurm.unused_slurm import UnusedSlurm

NOW = 1_700_000_000.0
MARK = "corral-x-"
ME = os.geteuid()
#: What a disk gives back after a crash, and what another program may have written.
DAMAGED = (b"\0\0\0\0\n", b"{]\n", b"[]\n", b"7\n", b"{}\n", b'{"nodes": 3, "gpus": []}\n', b"\xff\xfe\n", b"\n{}\n")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(str(tmp_path))
    made.prepare()
    return made


def ordered(layout: Layout, name: str = "j-1.1", ranks: int = 2) -> Attempt:
    instances = tuple(Instance(rank=rank, node=f"n{rank}", gpu_ids=(), gpu_indexes=()) for rank in range(ranks))
    for instance in instances:
        os.mkdir(layout.place(name, instance.rank))
    order = LaunchOrder(attempt_id=name, job_id="j-1", user="ann", command=("true",), instances=instances)
    return slurm_attempt.create(layout, order, NOW, JobOwner(uid=ME))


def loaded(layout: Layout, name: str = "j-1.1") -> Attempt:
    found = slurm_attempt.load(layout, name)
    assert found is not None
    return found


@pytest.mark.parametrize("damage", DAMAGED)
def test_an_engine_starts_with_a_damaged_order(layout: Layout, damage: bytes) -> None:
    ordered(layout, "j-2.1", 1)
    ordered(layout)
    Path(layout.order("j-1.1")).write_bytes(damage)
    attempts = {attempt.id: attempt for attempt in SlurmAttempts(layout).all()}
    assert sorted(attempts) == ["j-1.1", "j-2.1"]
    assert len(attempts["j-1.1"].nodes) == 2
    assert not attempts["j-2.1"].is_damaged


def test_an_order_that_cannot_be_read(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered(layout)

    def fail(path: str) -> list[str]:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(run_directory, "read_lines", fail)
    assert loaded(layout).is_damaged


def test_job_and_reports_of_a_damaged_record_are_found(layout: Layout) -> None:
    attempt = ordered(layout, ranks=1)
    slurm_attempt.note_job(layout, attempt, 7)
    path = Path(layout.order("j-1.1"))
    path.write_bytes(b"\0" * 40 + b"\n" + path.read_bytes().split(b"\n", 1)[1])
    found = loaded(layout)
    assert (found.job_id, found.owner) == (7, JobOwner(uid=ME))
    tracker = JobTracker(UnusedSlurm(), layout, MARK, lambda *_: None, contextlib.nullcontext())
    name = attempt.job_name(MARK)
    running = SlurmJob(id=7, name=name, uid=ME, state="RUNNING", nodes=("n0",), started_at=NOW)
    assert tracker.is_its(found, running)
    assert tracker._named_as(found, [running]) == [running]
    # Not the jobs of other accounts, and not those of other attempts.
    assert not tracker.is_its(found, SlurmJob(id=7, name=name, uid=ME + 1, state="RUNNING"))
    assert not tracker.is_its(found, SlurmJob(id=7, name=f"{MARK}j-1.10-5eed", uid=ME, state="RUNNING"))
    Path(f"{layout.place('j-1.1', 0)}/told").write_text(f"claimed 7\nup {NOW}\nend {NOW + 5} exit_code 3 - {NOW + 5}\n")
    status = loaded(layout).status()
    assert status is not None
    assert (status.phase, status.exit_code) == (AttemptPhase.ENDED, 3)


@pytest.mark.parametrize("damage", [b'{"job": 7, "verd', b'{"job": "seven"}', b'{"verdict": 5}', b"\0\0", b"[1]"])
def test_a_damaged_note_is_left_out(layout: Layout, damage: bytes) -> None:
    attempt = ordered(layout)
    with Path(layout.order("j-1.1")).open("ab") as file:
        file.write(damage)
    # The next note is a line of its own, although that one was cut off.
    slurm_attempt.note_job(layout, attempt, 8)
    slurm_attempt.conclude(layout, attempt, EndReason.PREEMPTED, "taken back")
    found = loaded(layout)
    assert (found.job_id, found.is_damaged, found.secret) == (8, False, attempt.secret)
    assert found.verdict is not None
    assert found.verdict.reason is EndReason.PREEMPTED


def test_an_order_is_written_whole_or_the_launch_fails(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk accepts a part of a line: an order that is cut off would be launched twice."""
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) <= 10:
            raise OSError(28, "No space left on device")
        return real(descriptor, bytes(data)[: len(data) - 10])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        run_directory.append(layout.order("j-1.1"), "a whole line of text\n")
