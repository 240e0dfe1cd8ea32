"""The reports of nodes and jobs about attempts, and their limits of trust."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, Instance, LaunchOrder
from corral.core.model import EndReason
from corral.engines.attempts import clean_text
from corral.engines.slurm.attempts import node_reports, run_directory, slurm_attempt
from corral.engines.slurm.attempts.ends import parse_exit
from corral.engines.slurm.attempts.node_reports import NodeReports
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.tracking import JobTracker
from corral.engines.slurm.cluster.occupancy import LEAVE_SECONDS, LINGER_SECONDS, LingeringJobs
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob
from tests.unit.engines.slurm.unused_slurm import UnusedSlurm

NOW = 1_700_000_000.0
ADA = JobOwner(uid=1001, name="ada")
EVE_UID = 1002
ORDER = LaunchOrder(
    attempt_id="j-1.1",
    job_id="j-1",
    user="ada",
    command=("/bin/true",),
    instances=(Instance(rank=0, node="node1", gpu_ids=("node1-gpu0",)),),
    env={},
    grace_seconds=5.0,
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(str(tmp_path))
    made.prepare()
    return made


@pytest.fixture
def attempt(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    monkeypatch.setattr(slurm_attempt, "clock", lambda: NOW + 100)
    os.mkdir(layout.place("j-1.1", 0))
    return slurm_attempt.create(layout, ORDER, NOW, ADA)


def report(layout: Layout, *lines: str) -> None:
    with open(f"{layout.place('j-1.1', 0)}/told", "a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def job(state: str, job_id: int = 7, **more: object) -> SlurmJob:
    fields = {"uid": ADA.uid, "nodes": ("node1",), "started_at": NOW + 1, **more}
    return SlurmJob(id=job_id, state=state, **fields)  # type: ignore[arg-type]


def test_reports_are_taken_once_and_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "news"
    path.write_text("j-9.1.0\n")
    heard = NodeReports(str(path))
    assert heard.take() == [], "that was for an earlier server"
    path.open("a").write("j-1.1.0\nj-2.1.11\nj-1.1.0\nj-3.")
    assert heard.take() == ["j-1.1", "j-2.1"]
    path.open("a").write("1.0\nnonsense\n../../etc.1.0\n")
    assert heard.take() == ["j-3.1"]
    assert heard.take() == []
    path.write_text("j-4.1.0\n")
    assert heard.take() == ["j-4.1"], "the file was emptied"
    assert path.stat().st_mode & 0o777 == 0o622


def test_invalid_reports_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_reports, "LIMIT_BYTES", 100)
    path = tmp_path / "news"
    heard = NodeReports(str(path))
    path.open("a").write("x" * 1000)
    assert heard.take() == []
    path.open("a").write("j-1.1.0\n" * 12)
    assert heard.take() == ["j-1.1"]
    path.open("a").write("j-2.1.0\n")
    assert heard.take() == ["j-2.1"]
    assert path.stat().st_size == 0, "what was read is thrown away"


@pytest.mark.parametrize("line", ["inf exit_code 0 - 1", "nan exit_code 0 - 1", "1 preempted 0 - 1", "1 lost", "", "x"])
def test_forged_reports_are_no_end(line: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_exit(line, limit_seconds=None, since=NOW, now=NOW + 10)


@pytest.mark.parametrize("code", ["-1", "256", "9" * 30])
def test_no_program_ends_with_such_a_code(code: str) -> None:
    with pytest.raises(ValueError, match="is not between"):
        parse_exit(f"{NOW} exit_code {code} - {NOW}", limit_seconds=None, since=NOW, now=NOW + 10)


def test_words_of_a_job_are_short_and_printable() -> None:
    words = "\x1b]0;owned\x07\u202e no\u009bm program" + "x" * 5000
    end = parse_exit(f"{NOW} launch_error - - {words}", limit_seconds=None, since=NOW, now=NOW + 10).exit
    assert end.message.startswith(r"\x1b]0;owned\x07\u202e no\x9bm programxxx")
    assert (end.message.isprintable(), len(end.message)) == (True, clean_text.MAX_CHARS)


def test_reports_are_read_forward_and_up_to_a_limit(
    layout: Layout, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = list[tuple[int, int]]()
    read_on = run_directory.read_on

    def counted(path: str, offset: int) -> tuple[list[str], int]:
        lines, behind = read_on(path, offset)
        reads.append((offset, behind))
        return lines, behind

    monkeypatch.setattr(run_directory, "read_on", counted)
    report(layout, "claimed 7", f"up {NOW + 1}")
    attempt.read_reports(layout)
    report(layout, *["up 1"] * 100_000, f"end {NOW + 5} exit_code 0 - {NOW + 5}")
    for _ in range(3):
        attempt.read_reports(layout)
    assert reads[0][0] == 0
    assert [offset for offset, _ in reads[1:]] == [behind for _, behind in reads[:-1]], "never back"
    assert reads[-1][1] <= run_directory.MAX_REPORT_BYTES
    assert not attempt.is_over, "an end behind that is Slurm's to say"
    attempt.follow(job("FAILED", exit_code=3), layout, NOW + 6)
    attempt.follow(job("FAILED", exit_code=3), layout, NOW + 60)
    status = attempt.status()
    assert status is not None
    assert (status.exit_code, status.began_at) == (3, NOW + 1)


def test_only_the_first_line_is_a_claim(layout: Layout, attempt: Attempt) -> None:
    report(layout, "claimed 7", "claimed 4711")
    attempt.read_reports(layout)
    report(layout, "claimed 4712")
    attempt.read_reports(layout)
    assert attempt.claimed_by == 7


def test_times_are_kept_between_the_order_and_now() -> None:
    for reported, believed in {"9e15": NOW + 10, "-5": NOW, f"{NOW + 3}": NOW + 3}.items():
        end = parse_exit(f"{reported} exit_code 0 - {reported}", limit_seconds=None, since=NOW, now=NOW + 10).exit
        assert (end.ended_at, end.main_ended_at) == (believed, believed)


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        ("PREEMPTED", EndReason.PREEMPTED, None),
        ("TIMEOUT", EndReason.TIMED_OUT, None),
        ("CANCELLED", EndReason.LOST, None),
        ("FAILED", EndReason.EXIT_CODE, 143),
    ],
)
def test_a_program_that_another_user_ended_has_slurms_end_reason(
    layout: Layout, attempt: Attempt, state: str, reason: EndReason, code: int | None
) -> None:
    report(layout, "claimed 7", f"up {NOW + 1}", f"end {NOW + 5} outside 143 15 {NOW + 5}")
    attempt.read_reports(layout)
    status = attempt.status()
    assert status is not None
    assert status.phase is AttemptPhase.RUNNING, "Slurm has not said yet why"
    attempt.follow(job("RUNNING"), layout, NOW + 6)
    assert not attempt.is_over
    attempt.follow(job(state, signal=15), layout, NOW + 7)
    status = attempt.status()
    assert status is not None
    assert (status.phase, status.reason, status.exit_code) == (AttemptPhase.ENDED, reason, code)


def test_a_stop_of_corrals_own_needs_no_word_of_slurms(layout: Layout, attempt: Attempt) -> None:
    attempt.was_stopped = True
    report(layout, f"end {NOW + 5} outside 143 15 {NOW + 5}")
    attempt.read_reports(layout)
    assert attempt.is_over


def test_the_first_failure_counts_although_slurm_reports_whole_seconds(layout: Layout, attempt: Attempt) -> None:
    attempt.nodes, attempt.was_stopped = ("node2", "node1"), True
    os.mkdir(layout.place("j-1.1", 1))
    with open(f"{layout.place('j-1.1', 1)}/told", "w", encoding="utf-8") as file:
        file.write(f"up {NOW + 1}\nend {NOW + 5.7} exit_code 3 - {NOW + 5.6}\n")
    attempt.follow(job("FAILED", ended_at=NOW + 5), layout, NOW + 6)
    assert not attempt.is_over, "the other may still say something"
    attempt.follow(job("FAILED", ended_at=NOW + 5), layout, NOW + 60)
    status = attempt.status()
    assert status is not None
    assert (status.exit_code, status.message) == (3, "instance 1 on node1: exit code 3")


def test_an_attempt_that_was_sent_twice_is_followed_where_it_runs(layout: Layout, attempt: Attempt) -> None:
    name = attempt.job_name("corral-x-")
    first, second = job("RUNNING", 7, name=name), job("COMPLETED", 8, name=name)

    class Answers(UnusedSlurm):
        def jobs(self) -> list[SlurmJob]:
            return [first, second]

        def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
            return []

    adopted = list[int]()

    def adopt(attempt: Attempt, job_id: int) -> None:
        adopted.append(job_id)
        attempt.job_id = job_id

    attempt.job_id = 8
    report(layout, "claimed 7", f"up {NOW + 1}")
    following = JobTracker(Answers(), layout, "corral-x-", adopt, contextlib.nullcontext())
    following.follow([attempt], [first], NOW + 60)
    assert (attempt.is_over, adopted) == (False, [7])
    # A job cannot make corral follow, and later cancel, another user's job.
    report(layout, "claimed 4711")
    following.follow([attempt], [first], NOW + 61)
    assert adopted == [7]


def test_the_next_server_knows_the_job_and_the_verdict(layout: Layout, attempt: Attempt) -> None:
    slurm_attempt.note_job(layout, attempt, 7)
    loaded = slurm_attempt.load(layout, "j-1.1")
    assert loaded is not None
    assert (loaded.job_id, loaded.nodes, loaded.gpus) == (7, ("node1",), {"node1": ("node1-gpu0",)})
    slurm_attempt.conclude(layout, attempt, EndReason.PREEMPTED, "others got its place")
    with open(layout.order("j-1.1"), "a", encoding="utf-8") as file:
        file.write('{"job": 9')  # a crash in the middle of a line
    loaded = slurm_attempt.load(layout, "j-1.1")
    assert loaded is not None
    assert (loaded.job_id, loaded.is_over) == (7, True)


def test_half_made_files_are_made_anew_and_an_order_is_not(layout: Layout) -> None:
    for rank in (0, 1, 2):
        os.mkdir(layout.place("j-2.1", rank))
    assert not layout.was_ordered("j-2.1")
    assert os.listdir(layout.places) == []
    slurm_attempt.create(layout, ORDER, NOW, ADA)
    os.mkdir(layout.place("j-1.1", 0))
    assert layout.was_ordered("j-1.1")
    layout.forget("j-1.1", delete_logs=False)
    assert (layout.live(), layout.was_ordered("j-1.1"), os.listdir(layout.places)) == ([], True, ["j-1.1.0"])
    layout.forget("j-1.1", delete_logs=True)
    assert (layout.was_ordered("j-1.1"), os.listdir(layout.places)) == (False, [])


def test_a_job_whose_attempt_is_over_may_linger_and_then_holds_what_it_holds(attempt: Attempt) -> None:
    leaving = LingeringJobs()
    seven, eight, nine = (replace(attempt, id=f"j-{number}.1", job_id=number) for number in (7, 8, 9))
    for one in (seven, eight, replace(attempt, job_id=None)):
        leaving.note(one, NOW)
    late, both = NOW + LINGER_SECONDS, [job("RUNNING", 7), job("RUNNING", 8)]
    assert (leaving.lingering(both, late - 1), leaving.stuck(both, late - 1)) == ({7, 8}, [])
    assert leaving.lingering([job("RUNNING", uid=EVE_UID)], late - 1) == set(), "another account's job has that id"
    leaving.note(seven, late)  # it is said at each observation
    assert (leaving.lingering(both, late), leaving.stuck([job("COMPLETING")], late)) == (set(), [])
    leaving.note(nine, NOW)
    assert leaving.stuck([job("RUNNING", 9, uid=EVE_UID)], late + 1) == [], "no other user's job is cancelled"
    leaving.note(seven, NOW)
    assert leaving.stuck([job("RUNNING")], late + 1) == [7]
    assert leaving.stuck([], late + 2) == []
    assert leaving.stuck([job("RUNNING")], late + 3) == [], "it was gone: this is another story"


def test_a_job_that_runs_on_after_its_reported_end_is_charged(attempt: Attempt) -> None:
    leaving, seven = LingeringJobs(), replace(attempt, job_id=7)
    leaving.note(seven, NOW)
    assert leaving.overran([job("RUNNING")], NOW + 1) == {}, "corral's script needs a moment to leave"
    assert leaving.overran([job("RUNNING")], NOW + LEAVE_SECONDS) == {attempt.id: NOW + LEAVE_SECONDS}
    assert leaving.overran([job("COMPLETING")], NOW + 9) == {}, "Slurm cleans up"
    assert leaving.overran([job("RUNNING", uid=EVE_UID)], NOW + 9) == {}


def test_reports_that_cannot_be_read_concern_their_attempt_only(
    layout: Layout, attempt: Attempt, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkdir(layout.place("j-2.1", 0))
    other = slurm_attempt.create(layout, replace(ORDER, attempt_id="j-2.1", job_id="j-2"), NOW, ADA)
    read_on = run_directory.read_on

    def refuses_one(path: str, offset: int) -> tuple[list[str], int]:
        if "j-1.1" in path:
            raise PermissionError(13, "Permission denied", path)
        return read_on(path, offset)

    monkeypatch.setattr(run_directory, "read_on", refuses_one)
    for one, job_id in ((attempt, 7), (other, 8)):
        one.job_id, one.secret = job_id, ""
        Path(layout.place(one.id, 0), "told").write_text(f"claimed {job_id}\nup {NOW + 1}\n")
    lock = contextlib.nullcontext()
    tracker = JobTracker(UnusedSlurm(), layout, "corral-x-", lambda one, job_id: None, lock)
    for _ in range(2):
        tracker.follow([attempt, other], [job("RUNNING"), job("RUNNING", 8)], NOW + 2)
    assert [one.up for one in (attempt, other)] == [{}, {0: NOW + 1}]
    assert caplog.text.count("the reports of instance 0 of j-1.1 cannot be read") == 1
    monkeypatch.undo()
    tracker.follow([attempt, other], [job("RUNNING"), job("RUNNING", 8)], NOW + 3)
    assert attempt.up


def test_an_instance_that_slurm_never_started_does_not_fail_with_the_code_of_srun(
    layout: Layout, attempt: Attempt
) -> None:
    attempt.nodes = ("node1", "node4")
    os.mkdir(layout.place("j-1.1", 1))
    Path(layout.place("j-1.1", 0), "claim").write_text("claimed 7\n")  # the script on the first node calls srun
    report(layout, "claimed 7", f"up {NOW + 1}", f"end {NOW + 5} outside 143 15 {NOW + 5}")  # srun ended its other task
    attempt.follow(job("FAILED", exit_code=167, ended_at=NOW + 5), layout, NOW + 6)
    attempt.follow(job("FAILED", exit_code=167, ended_at=NOW + 5), layout, NOW + 60)
    status = attempt.status()
    assert status is not None
    assert (status.reason, status.exit_code) == (EndReason.LOST, None)
    assert status.message.startswith("instance 1 on node4: Slurm could not begin it on its node (exit code 167)")
