"""`corral submit SCRIPT`: the options in its lines, the interpreter, and files that cannot be started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.jobs.test_submit import JOB
from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted

TRAIN = """#!/bin/bash
#CORRAL --gpus 2 --name=resnet
#CORRAL -c 8 --env A=1 --env B=2
# a comment
#CORRAL --env C=x --no-preemptible --array 0-3
echo training "$@"
#CORRAL --gpus 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(seen: Seen, number: int) -> Answer:
    if seen.path.startswith("/api/v1/jobs:array"):
        return as_json({"items": [{**JOB, "array": {"name": "resnet", "index": 0}}]}, status=201)
    if seen.path.startswith("/api/v1/queues"):
        return as_json({"items": [{"name": "night"}], "next_cursor": None})
    if seen.path.startswith("/api/v1/clusters"):
        return as_json({"items": [{"name": "local", "gpu_types": {"a100": "A100-80G"}}], "next_cursor": None})
    return as_json(JOB, status=201)


def submitted(*args: str) -> dict[str, Any]:
    """The body that the server got."""
    with scripted(answer) as server:
        result = corral("submit", "--server", server.url, *args)
    assert result.exit_code == 0, result.output
    body = json.loads(server.requests[-1].body)
    assert isinstance(body, dict)
    return body


def refused(*args: str) -> str:
    result = corral("submit", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_lines_of_a_script_are_options(folder: Path) -> None:
    (folder / "train.sh").write_text(TRAIN)
    body = submitted("train.sh", "90", "--fast")
    assert body.pop("command") == ["/bin/bash", "-c", TRAIN, "train.sh", "90", "--fast"]
    assert body == {
        "gpus": 2,
        "name": "resnet",
        "cpus": 8,
        "env": {"A": "1", "B": "2", "C": "x"},
        "preemptible": False,
        "array": "0-3",
        "workdir": str(folder),
    }


def test_flags_win_over_the_lines_of_a_script(folder: Path) -> None:
    (folder / "train.sh").write_text(TRAIN.replace(" --array 0-3", ""))
    body = submitted("--gpus", "4", "--env", "B=9", "./train.sh")
    assert (body["gpus"], body["env"], body["name"]) == (4, {"A": "1", "B": "9", "C": "x"}, "resnet")


def test_lines_for_slurm_are_read_as_sbatch_reads_them(folder: Path) -> None:
    lines = "#SBATCH -J net --gres=gpu:a100:2 -t 1:00:00\n#SBATCH -p gpu -d afterok:7\n#CORRAL --priority 3\n"
    (folder / "slurm.sh").write_text(f"#!/bin/bash\n{lines}srun true\n")
    with scripted(
        lambda seen, n: as_json({**JOB, "array": None}) if seen.path.endswith("/j-7") else answer(seen, n)
    ) as server:
        result = corral("submit", "--server", server.url, "slurm.sh")
    assert result.exit_code == 0, result.output
    body = json.loads(server.requests[-1].body)
    assert body["command"][0:2] == ["/bin/bash", "-c"]
    assert {key: body[key] for key in ("name", "gpus", "model", "time", "labels", "after", "priority", "workdir")} == {
        "name": "batch-net",
        "gpus": 2,
        "model": ["A100-80G"],
        "time": "3600s",
        "labels": {"slurm.partition.gpu": "yes"},
        "after": ["j-7"],
        "priority": 3,
        "workdir": str(folder),
    }
    assert "queue" not in body


def test_a_queue_that_is_typed_is_no_partition(folder: Path) -> None:
    (folder / "slurm.sh").write_text("#!/bin/bash\n#SBATCH -p gpu\ntrue\n")
    body = submitted("--queue", "missing", "slurm.sh")
    assert body["queue"] == "missing"
    assert "labels" not in body
    assert "name" not in body


def test_a_script_without_lines_runs_though_it_is_not_executable(folder: Path) -> None:
    (folder / "plain.sh").write_text("#!/bin/sh -e\ntrue\n")
    assert submitted("plain.sh")["command"] == ["/bin/sh", "-e", "-c", "#!/bin/sh -e\ntrue\n", "plain.sh"]


def test_a_python_script_is_started_as_a_file(folder: Path) -> None:
    (folder / "train.py").write_text("#!/usr/bin/env python3\n#CORRAL --gpus 1\n")
    body = submitted("train.py", "--epochs", "3")
    assert body["command"] == ["/usr/bin/env", "python3", str(folder / "train.py"), "--epochs", "3"]
    assert body["gpus"] == 1


def test_an_executable_script_without_lines_is_a_program_like_any_other(folder: Path) -> None:
    program = folder / "run.sh"
    program.write_text("#!/bin/sh\ntrue\n")
    program.chmod(0o755)
    assert submitted("./run.sh")["command"] == ["./run.sh"]


def test_a_program_of_a_repository_is_not_looked_for_here(folder: Path) -> None:
    (folder / "train.sh").write_text(TRAIN)
    assert submitted("--git", "https://git.example.org/a/b.git", "train.sh")["command"] == ["train.sh"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#CORRAL --gpus two", "train.sh:2: --gpus: 'two' is not a number"),
        ("#CORRAL --nodes 1.5", "train.sh:2: --nodes: '1.5' is not a whole number"),
        ("#CORRAL --gpu 2", "train.sh:2: --gpu: there is no such option\nHint: Did you mean --gpus?"),
        ("#CORRAL --partition gpu", "there is no such option\nHint: Use --queue for the queue of a job."),
        ("#CORRAL --name", "train.sh:2: --name: the value is missing"),
        ("#CORRAL --env A", "--env: expected NAME=VALUE, got 'A'"),
        ("#CORRAL --name 'x", "train.sh:2: No closing quotation"),
        ("#SBATCH --begin=22:00", "train.sh: --begin: corral starts jobs as soon as it can"),
    ],
)
def test_a_wrong_line_is_named(folder: Path, text: str, message: str) -> None:
    (folder / "train.sh").write_text(f"#!/bin/sh\n{text}\ntrue\n")
    assert message in refused("train.sh")


def test_a_file_that_cannot_be_started_is_refused_with_its_interpreter(folder: Path) -> None:
    (folder / "train.py").write_text("print(1)\n")
    error = refused("train.py", "--epochs", "3")
    assert "train.py is a file that cannot be started: it does not begin with #!" in error
    assert "Hint: Put its interpreter before it: -- python3 train.py --epochs 3" in error


def test_a_script_is_no_job_file(folder: Path) -> None:
    (folder / "train.sh").write_text(TRAIN)
    assert "Hint: It is a script: corral submit train.sh" in refused("-f", "train.sh")
