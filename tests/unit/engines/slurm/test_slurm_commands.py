"""Slurm's programs as several versions of them answer, played by scripts."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from corral.engines.slurm.slurm_api.commands import SlurmCommands, SlurmRefused, SlurmUnavailable
from tests.unit.engines.slurm.test_slurm_records import JOB_24, NODE_22, NODE_24

NO_JSON = "echo \"scontrol: unrecognized option '--json'\" >&2; echo 'Try \"scontrol --help\"' >&2; exit 1"
AWAY = "echo 'slurm_load_node error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
#: how `sinfo --json` answers since 23.02: columns of rows, and no nodes
ROWS = {"sinfo": [{"nodes": {"total": 1, "nodes": ["gpu1"]}, "node": {"state": ["IDLE"]}}], "errors": []}


class Programs:
    """The programs of an imitated Slurm, and the calls to them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.slurm = SlurmCommands(programs=str(directory))

    def install(self, name: str, script: str) -> None:
        path = self.directory / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.directory}/asked\n{script}\n')
        path.chmod(0o755)

    def answer(self, name: str, document: Any) -> None:
        self.answer_bytes(name, json.dumps(document).encode())

    def answer_bytes(self, name: str, answer: bytes) -> None:
        (self.directory / f"{name}.out").write_bytes(answer)
        self.install(name, f"cat {self.directory}/{name}.out")

    def asked(self) -> list[str]:
        """Since the last time."""
        path = self.directory / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_nodes_are_asked_for_by_scontrol_and_sinfo_is_left_alone(programs: Programs) -> None:
    programs.answer("scontrol", {"nodes": [NODE_24], "last_update": {"set": True, "number": 1}, "errors": []})
    programs.answer("sinfo", ROWS)
    (node,) = programs.slurm.nodes()
    assert (node.name, node.gpus, node.used_gpus) == ("gpu1", {"a100": 8}, 5)
    assert programs.asked() == ["scontrol --all --details show nodes --json"]


def test_a_version_without_that_json_is_asked_by_sinfo_and_that_is_found_out_once(programs: Programs) -> None:
    programs.install("scontrol", NO_JSON)
    programs.answer("sinfo", {"nodes": [NODE_22], "errors": []})
    assert [node.name for node in programs.slurm.nodes()] == ["gpu1"]
    programs.asked()
    assert [node.name for node in programs.slurm.nodes()] == ["gpu1"]
    assert programs.asked() == ["sinfo --json"]


def test_two_who_find_that_out_together_both_get_an_answer(programs: Programs) -> None:
    both = (
        f"echo >> {programs.directory}/here; while [ $(wc -l < {programs.directory}/here) -lt 2 ]; do sleep 0.01; done"
    )
    programs.install("scontrol", f"{both}; {NO_JSON}")
    programs.answer("sinfo", {"nodes": [NODE_22], "errors": []})
    with ThreadPoolExecutor(2) as threads:
        found = [future.result() for future in [threads.submit(programs.slurm.nodes) for _ in range(2)]]
    assert [[node.name for node in nodes] for nodes in found] == [["gpu1"], ["gpu1"]]


def test_an_update_of_slurm_meanwhile_costs_one_look_and_never_shows_an_empty_cluster(programs: Programs) -> None:
    programs.install("scontrol", NO_JSON)
    programs.answer("sinfo", {"nodes": [NODE_22], "errors": []})
    programs.slurm.nodes()
    programs.answer("scontrol", {"nodes": [NODE_24], "errors": []})
    programs.answer("sinfo", ROWS)
    with pytest.raises(SlurmUnavailable, match="sinfo --json: there are no nodes in what Slurm answered, but sinfo"):
        programs.slurm.nodes()
    assert [node.name for node in programs.slurm.nodes()] == ["gpu1"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"errors": [{"error": "Protocol authentication error", "error_number": 1007}]}, "authentication error"),
        ({"meta": {}, "errors": []}, "there are no nodes in what Slurm answered, but meta, errors"),
        ([], "gave another JSON than expected"),
    ],
)
def test_an_answer_without_a_list_of_nodes_is_an_error(programs: Programs, answer: Any, words: str) -> None:
    programs.answer("scontrol", answer)
    with pytest.raises(SlurmUnavailable, match=words):
        programs.slurm.nodes()


def test_a_controller_that_is_away_says_nothing_about_the_version(programs: Programs) -> None:
    programs.install("scontrol", AWAY)
    programs.answer("sinfo", ROWS)
    with pytest.raises(SlurmUnavailable, match="Unable to contact slurm controller"):
        programs.slurm.nodes()
    programs.install("scontrol", "echo 'scontrol: fatal: could not find plugin for application/json' >&2; exit 1")
    with pytest.raises(SlurmRefused, match="could not find plugin"):
        programs.slurm.nodes()
    assert {line.split()[0] for line in programs.asked()} == {"scontrol"}


@pytest.mark.parametrize("name", [b"caf\xe9", "训练".encode()[:4], "训练".encode()[:5]])
def test_jobs_are_called_anything_and_are_cut_anywhere(programs: Programs, name: bytes) -> None:
    document = json.dumps({"jobs": [{**JOB_24, "name": "NAME"}], "errors": []}).encode()
    programs.answer_bytes("squeue", document.replace(b"NAME", name))
    assert [job.name[-1] for job in programs.slurm.jobs()] == ["�"]


def test_the_books_are_asked_for_certain_jobs_only(programs: Programs) -> None:
    job = {"job_id": 7, "name": "corral-ab-j-1.1", "state": {"current": ["TIMEOUT"], "reason": "None"}}
    programs.answer("sacct", {"jobs": [job], "errors": []})
    assert [(job.id, job.state) for job in programs.slurm.ended([7, 9])] == [(7, "TIMEOUT")]
    assert programs.slurm.named("corral-ab-j-1.1", 0.0)[0].name == "corral-ab-j-1.1"
    assert programs.slurm.ended([]) == []
    assert programs.asked() == [
        "sacct --json --allusers --allocations --jobs=7,9",
        "sacct --json --allusers --allocations --name=corral-ab-j-1.1 --starttime=1970-01-01T00:00:01",
    ]


def test_books_that_have_nothing_of_a_job_have_answered(programs: Programs) -> None:
    nothing = {"description": "Nothing found", "error_number": 9003, "error": "Nothing found with query"}
    programs.answer("sacct", {"errors": [nothing], "jobs": []})
    assert programs.slurm.ended([999]) == []
    programs.answer("sacct", {"errors": [nothing, {"error": "Unable to connect to database"}], "jobs": []})
    with pytest.raises(SlurmUnavailable, match="sacct: Unable to connect to database"):
        programs.slurm.ended([999])


def test_a_reservation_has_nodes_while_it_is_active(programs: Programs) -> None:
    reported = "ReservationName=corral StartTime=2026-01-01T00:00:00 Nodes=gpu[1-2],gpu7 NodeCnt=3 Users=root State={}"
    programs.answer_bytes("scontrol", reported.format("ACTIVE").encode())
    assert programs.slurm.reserved("corral") == ["gpu1", "gpu2", "gpu7"]
    programs.answer_bytes("scontrol", reported.format("INACTIVE").encode())
    assert programs.slurm.reserved("corral") == []
    assert programs.asked() == ["scontrol --oneliner show reservation corral"] * 2
    programs.install("scontrol", "echo 'Reservation corral not found'; exit 1")
    with pytest.raises(SlurmRefused, match="Reservation corral not found"):
        programs.slurm.reserved("corral")
