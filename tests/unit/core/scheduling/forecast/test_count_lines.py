"""The waiting jobs in the counted part of a rollout, and their order."""

from __future__ import annotations

from collections.abc import Mapping

from corral.core.model import Job, Node, Queue
from corral.core.scheduling.forecast.count_lines import CountedLine, Order, Scores
from corral.core.scheduling.forecast.remaining_time import Length
from corral.core.snapshot.changes import Change, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from corral.core.snapshot.waiting_lines import line_of
from tests.unit.core.builders import node, running, snapshot_of, waiting

NOW = 100.0
FCFS = Queue(name="default", policy="fcfs")


def lengths(snapshot: ClusterSnapshot) -> Mapping[str, Length]:
    return dict.fromkeys(snapshot.jobs, Length(600.0, 0.0))


def counted(*changes: Node | Queue | Job | Change) -> list[str]:
    """The jobs of all lines, each line in order."""
    snapshot = snapshot_of(*changes)
    order = Order(snapshot, lengths(snapshot))
    found = []
    for key in sorted(snapshot.lines):
        line = CountedLine(snapshot, key, order, {}, Scores(snapshot, NOW))
        while line.head is not None:
            found.append(line.head.id)
            line.pop()
    return found


def test_a_limit_of_one_queue_does_not_hold_equal_jobs_of_another() -> None:
    small = Queue(name="small", policy="fcfs", max_gpus=1)
    wide = Queue(name="wide", policy="fcfs")
    alike = [waiting(1, gpus=2, queue="small"), waiting(2, gpus=2, queue="wide"), waiting(3, gpus=1, queue="small")]
    assert counted(node("n1", 4), small, wide, *alike) == ["j-3", "j-2"]


def test_a_limit_that_is_only_used_up_holds_no_job_for_ever() -> None:
    narrow = Queue(name="default", policy="fcfs", max_gpus=2)
    assert counted(node("n1", 4), narrow, running(1, {"n1": (0, 1)}), waiting(2, gpus=2), waiting(3, gpus=3)) == ["j-2"]


def test_guaranteed_gpus_that_are_in_use_hold_a_job_for_now_only() -> None:
    rules = PutRules(limits=Limits(), score_time_constant=3600.0, preemption=PreemptionRules(enabled=True))
    lab, rest = Queue(name="lab", policy="fcfs", guaranteed_gpus=2), Queue(name="rest", policy="fcfs")
    busy = running(1, {"n1": (0, 1)}, queue="rest")
    fits = waiting(2, queue="rest", gpus=2, preemptible=False)
    never = waiting(3, queue="rest", gpus=3, preemptible=False)
    assert counted(rules, lab, rest, node("n1", 4), busy, fits, never) == ["j-2"]


def test_jobs_that_the_fleet_cannot_hold_are_left_out() -> None:
    assert counted(node("n1", 2), FCFS, waiting(1, gpus=4), waiting(2, gpus=2)) == ["j-2"]


def test_jobs_that_started_already_are_skipped_and_a_job_can_be_put_back() -> None:
    jobs = [waiting(number, gpus=1) for number in (1, 2, 3)]
    snapshot = snapshot_of(node("n1", 4), FCFS, *jobs)
    order = Order(snapshot, lengths(snapshot))
    line = CountedLine(snapshot, line_of(jobs[0]), order, {"j-2": NOW}, Scores(snapshot, NOW))
    first = line.head
    assert first is not None
    line.pop()
    assert line.head is not None
    assert (first.id, line.head.id) == ("j-1", "j-3")
    line.put_back(first)
    assert line.head is first
