"""Squeue's table of the jobs that wait or run."""

from __future__ import annotations

from typing import Any

import pytest

from corral.engines.slurm.devices import Devices
from corral.engines.slurm.listing import FORMAT, jobs_in
from corral.engines.slurm.seen import SlurmJob, Unreadable

GAP = "\x1f"
RUNNING = (
    "17", "RUNNING", "2026-01-03T10:00:00", "2026-01-03T10:00:01", "None", "4",
    "cpu=4,mem=2G,node=2,billing=4,gres/gpu=6,gres/gpu:a100=6", "node[1-2]", "corral-1a2b-j-1.1", "corral-1a2b-j-1.1",
)  # fmt: skip
WAITING = ("18", "PENDING", "2026-01-03T10:00:02", "N/A", "Resources", "1", "N/A", "", "train | é", "(null)")


def table(*rows: tuple[str, ...]) -> str:
    widths = [int(column.split(":")[1].rstrip(GAP)) for column in FORMAT.split(",")]
    return "".join(
        "".join(f"{cell:<{width}}{GAP}" for cell, width in zip(row, widths, strict=True)) + "\n" for row in rows
    )


def test_what_a_job_holds_is_told_for_each_of_its_nodes() -> None:
    running, waiting = jobs_in(table(RUNNING, WAITING))
    assert running == SlurmJob(
        id=17,
        name="corral-1a2b-j-1.1",
        state="RUNNING",
        comment="corral-1a2b-j-1.1",
        nodes=("node1", "node2"),
        gpus=3,
        cpus=2,
        memory_mib=1024,
        submitted_at=1767434400.0,
        started_at=1767434401.0,
    )
    assert running.holds_nodes
    assert (waiting.state, waiting.reason, waiting.nodes, waiting.started_at) == ("PENDING", "Resources", (), None)
    assert (waiting.name, waiting.comment) == ("train | é", "")


def test_nobody_waits_or_runs() -> None:
    assert jobs_in("\n") == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((*RUNNING[:7], "node[" + "1," * 300 + "9]", *RUNNING[8:]), "NodeList of job 17 is cut off"),
        ((*RUNNING[:6], "cpu=4," * 80, *RUNNING[7:]), "tres-alloc of job 17 is cut off"),
        ((*RUNNING[:8], f"a{GAP}b", RUNNING[9]), "11 columns instead of 10"),
    ],
)
def test_a_row_that_is_cut_off_or_has_a_column_too_many_is_not_believed(row: tuple[str, ...], words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        jobs_in(table(row))


def test_the_devices_of_others_are_asked_for_once_while_they_run() -> None:
    devices, asked = Devices(), []

    def stranger(number: int, **more: Any) -> SlurmJob:
        return SlurmJob(id=number, name="theirs", state="RUNNING", nodes=("node1",), gpus=2, **more)

    def all_jobs() -> list[SlurmJob]:
        asked.append("squeue --json")
        return [stranger(number, gpu_indexes={"node1": frozenset({number})}) for number in (1, 2, 3)]

    def told(*numbers: int) -> list[set[int]]:
        jobs = devices.told([stranger(number) for number in numbers], {3}, all_jobs)
        return [set(job.gpu_indexes.get("node1", ())) for job in jobs]

    assert told(3) == [set()]
    assert not asked, "corral's own are not asked for"
    assert told(1, 3) == [{1}, set()]
    assert told(1) == [{1}]
    assert len(asked) == 1
    assert told(2, 1) == [{2}, {1}]
    assert len(asked) == 2
