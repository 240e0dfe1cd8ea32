"""Squeue's table of the jobs that wait or run."""

from __future__ import annotations

from typing import Any

import pytest

from corral.engines.slurm.slurm_api import squeue_table
from corral.engines.slurm.slurm_api.devices import Devices
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob, Unreadable
from corral.engines.slurm.slurm_api.squeue_table import table_format

NONCE = "5eed5eed5eed5eed"
GAP, END = f"\x1f{NONCE}\x1f", f"\x1e{NONCE}\x1e"
RUNNING = {
    "JobID": "17",
    "UserID": "1001",
    "State": "RUNNING",
    "SubmitTime": "2026-01-03T10:00:00",
    "StartTime": "2026-01-03T10:00:01",
    "Reason": "None",
    "NumCPUs": "4",
    "tres-alloc": "cpu=4,mem=2G,node=2,billing=4,gres/gpu=6,gres/gpu:a100=6",
    "NodeList": "node[1-2]",
}
WAITING = {
    "JobID": "18",
    "UserID": "0",
    "State": "PENDING",
    "SubmitTime": "2026-01-03T10:00:02",
    "Reason": "Resources",
    "NumCPUs": "1",
    "NodeList": "",
}
#: what a job has where the accounting of Slurm has no column for GPUs
WITHOUT_GPUS = "cpu=4,mem=2G,node=2,billing=4"


def table(*rows: dict[str, str]) -> str:
    """A table like squeue prints it: with spaces up to the width of each column."""
    columns = [column.split(":") for column in table_format(NONCE).split(",")]
    widths = {name: int(rest.split("\x1f")[0].split("\x1e")[0]) for name, rest in columns}
    return "".join(GAP.join(f"{row.get(name, 'N/A'):<{widths[name]}}" for name in widths) + END + "\n" for row in rows)


def jobs_in(text: str) -> list[SlurmJob]:
    return squeue_table.jobs_in(text, NONCE)


def test_the_gpus_of_a_job_are_reported_for_each_of_its_nodes() -> None:
    running, waiting = jobs_in(table(RUNNING, WAITING))
    assert running == SlurmJob(
        id=17,
        uid=1001,
        state="RUNNING",
        nodes=("node1", "node2"),
        gpus=3,
        cpus=2,
        memory_mib=1024,
        submitted_at=1767434400.0,
        started_at=1767434401.0,
    )
    assert running.holds_nodes
    assert (waiting.state, waiting.reason, waiting.nodes, waiting.started_at) == ("PENDING", "Resources", (), None)
    assert (waiting.uid, waiting.name, waiting.comment) == (0, "", "")


def test_separator_changes_each_time_and_the_name_is_the_only_free_text() -> None:
    assert squeue_table.new_nonce() != squeue_table.new_nonce()
    names = {column.split(":")[0] for column in table_format(NONCE).split(",")}
    assert names.isdisjoint({"Comment", "Command", "WorkDir", "Account", "WCKey", "AdminComment", "Dependency"})


@pytest.mark.parametrize("text", ["\x1f", "\n", "\n18\x1f0\x1fRUNNING", "\x1b[31m", "\x1f5eed\x1f", "\x85"])
def test_a_control_character_makes_a_row_unreadable_and_never_two_of_it(text: str) -> None:
    with pytest.raises(Unreadable, match="control characters in a row"):
        jobs_in(table({**RUNNING, "Reason": f"Resources{text}"}))
    # Users choose names: one with control characters is no name of corral's, and hides no other row.
    odd, waiting = jobs_in(table({**RUNNING, "Name": f"corral{text}"}, WAITING))
    assert (odd.id, odd.name, waiting.id) == (17, squeue_table.UNREADABLE_NAME, 18)


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        # as corral asks, and --gpus-per-node
        ({"tres-per-node": "gres:gpu:3"}, 3),
        ({"tres-per-node": "gres/gpu:a100:2,gres/gpu:1080ti:1"}, 3),
        # --gpus and --gpus-per-task: it is known that there are some; only the expensive query reports how many
        ({"tres-per-job": "gres:gpu:5"}, 3),
        ({"tres-per-task": "cpu=2,gres/gpu=1"}, 1),
        ({"tres-per-socket": "gres:gpu:2"}, 1),
        ({}, 0),
    ],
)
def test_gpus_that_slurm_does_not_book_are_those_that_were_asked_for(asked: dict[str, str], gpus: int) -> None:
    (job,) = jobs_in(table({**RUNNING, "tres-alloc": WITHOUT_GPUS, **asked}))
    assert job.gpus == gpus
    (booked,) = jobs_in(table({**RUNNING, **asked}))
    assert booked.gpus == 3


def test_no_job_waits_or_runs() -> None:
    assert jobs_in("\n") == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**RUNNING, "NodeList": "node[" + "1," * 300 + "9]"}, "NodeList of job 17 is cut off"),
        ({**RUNNING, "tres-alloc": "cpu=4," * 80}, "tres-alloc of job 17 is cut off"),
        ({**RUNNING, "Reason": f"a{GAP}b"}, "15 columns instead of 14"),
        ({**RUNNING, "Reason": f"a{END}b"}, "6 columns instead of 14"),
        ({**RUNNING, "UserID": "eve"}, "invalid literal for int"),
        ({**RUNNING, "JobID": "17_[1-3]"}, "invalid literal for int"),
        ({**RUNNING, "SubmitTime": "yesterday"}, "does not match format"),
        ({**RUNNING, "NodeList": "node[a-b]"}, "invalid literal for int"),
    ],
)
def test_a_row_that_is_cut_off_or_has_a_column_too_many_is_not_believed(row: dict[str, str], words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        jobs_in(table(row))


def test_the_devices_of_others_are_asked_for_once_while_they_run() -> None:
    devices, asked = Devices(), []

    def stranger(number: int, **more: Any) -> SlurmJob:
        return SlurmJob(id=number, name="theirs", state="RUNNING", nodes=("node1",), gpus=2, **more)

    def all_jobs() -> list[SlurmJob]:
        asked.append("squeue --json")
        return [stranger(number, gpu_indexes={"node1": frozenset({number})}) for number in (1, 2, 3)]

    def reported(*numbers: int) -> list[set[int]]:
        jobs = devices.complete([stranger(number) for number in numbers], {3}, all_jobs)
        return [set(job.gpu_indexes.get("node1", ())) for job in jobs]

    assert reported(3) == [set()]
    assert not asked, "corral's own are not asked for"
    assert reported(1, 3) == [{1}, set()]
    assert reported(1) == [{1}]
    assert len(asked) == 1
    assert reported(2, 1) == [{2}, {1}]
    assert len(asked) == 2
