"""`corral simulate` on made-up traces: tables, JSON, files, and what is wrong said before anything is written."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.runner import corral, problem_on_stderr
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted
from tests.unit.simulator.test_traces import SACCT, SWF, view

#: large jobs and small ones, more than the fleet can run at once
TRACE = "job_id,num_gpu,submit_time,iterations,iteration_time\n" + "".join(
    f"{number},{1 + number % 8},{number * 1000},{10 + number % 5},1000\n" for number in range(60)
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def simulated(*args: str) -> dict[str, Any]:
    result = corral("simulate", *args, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_policies_stand_side_by_side(trace: Path) -> None:
    result = corral("simulate", str(trace), "--nodes", "1x8xA10", "--policy", "fcfs,fair-share")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"60 jobs of {trace} (philly) on 1 node with 8 GPUs"
    assert lines[2].split() == ["RUN", "fcfs", "fair-share"]
    rows = {line[:22].strip(): line[22:].split() for line in lines[3:]}
    assert len(rows["waiting mean"]) == 2
    assert rows["never started"] == ["0", "0"]
    assert rows["utilisation"][0].endswith("%")


def test_json_has_everything_and_gpu_time_is_the_same_under_every_rule(trace: Path) -> None:
    found = simulated(str(trace), "--nodes", "1x8", "--blocking", "strict,backfill", "--placement", "pack")
    assert (found["jobs"], found["gpus"], found["left_out"]) == (60, 8, {})
    names = [run["name"] for run in found["runs"]]
    assert names == ["fair-share-strict", "fair-share-backfill"]
    assert len({round(run["gpu_hours"], 6) for run in found["runs"]}) == 1
    assert all(run["jobs"] == 60 and run["placement"] == "pack" for run in found["runs"])


def test_with_known_run_times_backfill_waits_less_than_strict(trace: Path) -> None:
    strict, backfill = simulated(
        str(trace), "--nodes", "1x8", "--policy", "fcfs", "--blocking", "strict,backfill", "--time-limits", "known"
    )["runs"]
    assert backfill["wait_seconds"]["mean"] < strict["wait_seconds"]["mean"]


def test_files_and_plots(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    args = ("--nodes", "1x8", "--policy", "fcfs,priority", "--csv", str(out), "--plots", str(out), "--limit", "30")
    found = simulated(str(trace), *args, "--gantt", "5")
    assert sorted(Path(file).name for file in found["files"]) == sorted(path.name for path in out.iterdir())
    with (out / "jobs-fcfs.csv").open(newline="") as file:
        jobs = list(csv.DictReader(file))
    assert len(jobs) == 30
    assert all(float(job["started_seconds"]) >= float(job["submitted_seconds"]) for job in jobs)
    with (out / "utilisation-fcfs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(0 <= float(row["utilization"]) <= 1 for row in rows)
    with (out / "summary.csv").open(newline="") as file:
        figures = list(csv.DictReader(file))
    assert [row["run"] for row in figures] == ["fcfs", "priority"]
    assert float(figures[0]["wait_seconds_mean"]) == pytest.approx(found["runs"][0]["wait_seconds"]["mean"])
    for name in ("utilisation", "waiting", "gantt-fcfs", "gantt-priority"):
        root = ElementTree.fromstring((out / f"{name}.svg").read_text())
        assert root.tag.endswith("svg")
    bars = ElementTree.parse(out / "gantt-fcfs.svg").getroot().findall(".//{*}rect/{*}title")
    assert {bar.text for bar in bars} == {f"j-{number} of trace" for number in range(1, 6)}


def test_a_job_longer_than_its_limit_is_cut_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "jobs.swf"
    path.write_text(SWF.replace("8 200 -1 1 3 7", "8 40 -1 1 3 7"))
    result = corral("simulate", str(path))
    assert result.exit_code == 0, result.output
    assert "Left out: 1 job (the run time is not known)" in result.stderr
    rows = {line[:22].strip(): line[22:].split() for line in result.stdout.splitlines()}
    assert rows["cut at the time limit"] == ["1"]


def test_sacct_with_groups(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    found = simulated(str(path), "--nodes", "4x4xa100")
    assert found["runs"][0]["groups"]["gpu_hours"].keys() == {"vision", "text"}


def test_the_server_s_own_history() -> None:
    node = {"id": "n1", "cpus": 8.0, "memory_bytes": 2**36, "labels": {}}
    node["gpus"] = [{"id": f"n1/{index}", "index": index, "model": "A10", "memory_bytes": 0} for index in range(2)]

    def answer(seen: Seen, number: int) -> Answer:
        page = {"/api/v1/nodes": [node], "/api/v1/jobs": [view("j-1"), view("j-2"), view("j-3", gpus=2)]}
        return as_json({"items": page[seen.path.partition("?")[0]], "next": None})

    with scripted(answer) as server:
        found = simulated("history", "--server", server.url)
    assert (found["jobs"], found["gpus"], found["runs"][0]["jobs"]) == (3, 2, 3)
    assert "state=completed" in server.requests[-1].path


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--policy", "fifo"], "--policy: 'fifo' is not one of fair-share, "),
        (["--policy", " , "], "--policy names nothing"),
        (["--placement", "tetris"], "--placement: 'tetris' is not one of "),
        (["--blocking", "maybe"], "--blocking: 'maybe' is not one of strict, backfill"),
        (["--time-limits", "some"], "--time-limits: 'some' is not one of given, known, none"),
        (["--format", "xml"], "--format: 'xml' is not one of openb, "),
        (["--format", "swf", "--nodes", "1x8"], "line 1: 1 fields; the format has 18"),
        (["--nodes", "eight"], "--nodes: 'eight' is not a fleet"),
        (["--nodes", "1x0"], "has no job that could run: 60 jobs: it could never run on this fleet"),
    ],
)
def test_wrong_input_is_wrong_usage(args: list[str], problem: str, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = corral("simulate", str(trace), *args, "--csv", str(out), "-o", "json")
    assert result.exit_code == 2
    assert problem in problem_on_stderr(result)["detail"]
    assert not out.exists()


def test_a_trace_that_is_not_there_and_a_place_that_cannot_be_written(trace: Path, tmp_path: Path) -> None:
    result = corral("simulate", str(tmp_path / "absent.csv"))
    assert result.exit_code == 2
    assert "cannot be read: No such file" in result.stderr
    (tmp_path / "taken").write_text("")
    result = corral("simulate", str(trace), "--csv", str(tmp_path / "taken"))
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
