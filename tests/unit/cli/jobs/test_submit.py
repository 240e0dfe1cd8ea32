"""Flags and the job file become one submission; errors of the server name the flag or the line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from corral.cli.terminal.terminal import Terminal
from tests.unit.cli.runner import corral, problem_on_stderr
from tests.unit.client.scripted_server import Answer, Seen, as_json, problem, scripted

JOB: dict[str, Any] = {
    "id": "j-7",
    "name": "resnet",
    "state": "queued",
    "attempt": 0,
    "allocation": None,
    "end_reason": None,
    "exit_code": None,
    "message": "",
}


def submitted(*args: str) -> dict[str, Any]:
    """The body that the server got."""
    with scripted(lambda seen, n: as_json(JOB, status=201)) as server:
        result = corral("submit", *args, "--server", server.url)
    assert result.exit_code == 0, result.output
    assert server.requests[0].path == "/api/v1/jobs"
    body = json.loads(server.requests[0].body)
    assert isinstance(body, dict)
    return body


def test_every_flag_reaches_the_server_under_the_name_of_the_api() -> None:
    flags = (
        "--name resnet --gpus 4 --nodes 2 --cpus 0.5 --memory 16GiB --model A100 --model H200 --label zone=a "
        "--label x= --queue night --priority 3 --time 2h --grace 10s --env A=1 --env B=x=y --workdir /data "
        "--kind distributed --retries 0 --no-preemptible --hold"
    )
    # what belongs to corral ends where the program begins
    with scripted(lambda seen, n: as_json(JOB, status=201)) as server:
        result = corral(
            "submit", *flags.split(), "--server", server.url, "--", "python", "train.py", "--gpus", "9", "--"
        )
    assert result.exit_code == 0
    assert json.loads(server.requests[0].body) == {
        "name": "resnet",
        "gpus": 4,
        "nodes": 2,
        "cpus": 0.5,
        "memory": "16GiB",
        "model": ["A100", "H200"],
        "labels": {"zone": "a", "x": ""},
        "queue": "night",
        "priority": 3,
        "time": "2h",
        "grace": "10s",
        "env": {"A": "1", "B": "x=y"},
        "workdir": "/data",
        "kind": "distributed",
        "max_retries": 0,
        "preemptible": False,
        "hold": True,
        "command": ["python", "train.py", "--gpus", "9", "--"],
    }
    assert "Submitted j-7 (resnet), queued. Follow it: corral logs -f j-7" in result.stdout


def test_without_flags_only_the_command_and_this_directory_are_sent() -> None:
    with scripted(lambda seen, n: as_json(JOB, status=201)) as server:
        corral("submit", "--server", server.url, "sleep", "--help")
    assert json.loads(server.requests[0].body) == {"command": ["sleep", "--help"], "workdir": os.getcwd()}


def test_flags_win_over_the_file_and_environments_are_put_together(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("gpus: 1\nname: old\nenv: {A: 1, B: 2}\nmodel: A100\ncommand: [python, a.py]\nworkdir: sub\n")
    body = submitted("-f", str(file), "--gpus", "8", "--env", "B=3", "--model", "H200")
    assert body == {
        "gpus": 8,
        "name": "old",
        "env": {"A": "1", "B": "3"},
        "model": ["H200"],
        "command": ["python", "a.py"],
        "workdir": str(tmp_path / "sub"),
    }


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "command: there is nothing to run"),
        (["--env", "A", "--", "true"], "--env: expected NAME=VALUE, got 'A'"),
        (["--label", "=x", "--", "true"], "--label: expected NAME=VALUE, got '=x'"),
        (["--gpus", "many", "--", "true"], "--gpus"),
        (["--gpus", "nan", "--", "true"], "--gpus"),
        (["--nodes", "1.5", "--", "true"], "--nodes"),
        (["--dry-run", "--wait", "--", "true"], "--dry-run and --wait exclude each other"),
        (["--flavour", "x", "--", "true"], "--flavour"),
        (["-f", "none.yaml"], "cannot read none.yaml: No such file or directory"),
    ],
)
def test_wrong_usage_names_the_flag_and_sends_nothing(args: list[str], message: str) -> None:
    result = corral("submit", *args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    as_problem = corral("submit", "-o", "json", *args)
    assert as_problem.exit_code == 2
    assert message in problem_on_stderr(as_problem)["detail"]
    assert problem_on_stderr(as_problem)["type"] == "/problems/usage"


def test_the_servers_objections_point_to_the_line_or_the_flag(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: x\ngpus: two\ncommand: 'true'\n")
    errors = [
        {"field": "gpus", "message": "must be a number, got 'two'"},
        {"field": "max_retries", "message": "must be at least 0, got -1"},
        {"field": "env.1A", "message": "is not a name"},
    ]
    answer = problem(422, title="The request is not valid", detail="gpus: must…", errors=errors)
    with scripted(lambda seen, n: answer) as server:
        result = corral("submit", "-f", str(file), "--retries", "-1", "--env", "1A=x", "--server", server.url)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "Error: The request is not valid",
        f"  {file}:2: gpus: must be a number, got 'two'",
        "  --retries: must be at least 0, got -1",
        "  --env: is not a name",
        "Hint: `corral submit --help` explains it.",
    ]


def test_a_single_objection_is_one_line() -> None:
    answer = problem(422, title="Invalid", detail="…", errors=[{"field": "gpus", "message": "at most 8, got 9"}])
    with scripted(lambda seen, n: answer) as server:
        result = corral("submit", "--gpus", "9", "--server", server.url, "true")
    assert result.stderr == "Error: --gpus: at most 8, got 9\nHint: `corral submit --help` explains it.\n"


@pytest.mark.parametrize(
    ("plan", "code", "lines"),
    [
        (
            {"outcome": "start", "detail": "", "start_at": None, "nodes": ["gpu-1"], "reasons": [], "ahead_count": 0},
            0,
            ["It would start now.", "  on gpu-1"],
        ),
        (
            {
                "outcome": "wait",
                "detail": "4 of 8 GPUs are free",
                "start_at": None,
                "nodes": [],
                "reasons": [{"rule": "free-gpus", "detail": "needs 8", "numbers": {}, "jobs": []}],
                "ahead_count": 2,
            },
            0,
            ["It would wait: 4 of 8 GPUs are free", "  behind 2 jobs", "  free-gpus: needs 8"],
        ),
        (
            {"outcome": "refuse", "detail": "quota", "start_at": None, "nodes": [], "reasons": [], "ahead_count": 0},
            1,
            ["It would be refused: quota"],
        ),
    ],
)
def test_a_dry_run_says_what_would_happen_and_submits_nothing(
    plan: dict[str, Any], code: int, lines: list[str]
) -> None:
    with scripted(lambda seen, n: as_json(plan)) as server:
        result = corral("submit", "--dry-run", "--gpus", "8", "--server", server.url, "true")
        as_document = corral("submit", "--dry-run", "-o", "json", "--server", server.url, "true")
    assert result.exit_code == as_document.exit_code == code
    assert result.stdout.splitlines() == lines
    assert json.loads(as_document.stdout) == plan
    assert {seen.path for seen in server.requests} == {"/api/v1/jobs:plan"}


@pytest.mark.parametrize(
    ("state", "exit_code", "status"), [("completed", 0, 0), ("failed", 3, 3), ("stopped", None, 1)]
)
def test_waiting_ends_with_the_jobs_exit_code(state: str, exit_code: int | None, status: int) -> None:
    def answer(seen: Seen, before: int) -> Answer:
        if before == 0:
            return as_json(JOB, status=201)
        return as_json({**JOB, "state": state, "exit_code": exit_code, "attempt": 1, "message": "done"})

    with scripted(answer) as server:
        result = corral("submit", "--wait", "-o", "json", "--server", server.url, "true")
    assert result.exit_code == status
    assert json.loads(result.stdout)["state"] == state
    assert f"j-7 {state}" in result.stderr


def test_an_array_is_one_request_and_what_comes_after_is_named() -> None:
    members = [{**JOB, "id": f"j-{n}", "name": f"sweep-{n}", "array": {"name": "sweep", "index": n}} for n in (7, 8)]
    with scripted(lambda seen, n: as_json({"items": members}, status=201)) as server:
        flags = ["--name", "sweep", "--array", "7-8", "--after", "first,second", "--after", "j-3"]
        result = corral("submit", *flags, "--server", server.url, "--", "true")
    assert result.exit_code == 0, result.output
    assert server.requests[0].path == "/api/v1/jobs:array"
    body = json.loads(server.requests[0].body)
    assert (body["array"], body["after"]) == ("7-8", ["first", "second", "j-3"])
    assert result.output == "Submitted 2 jobs: sweep-7 (j-7) to sweep-8 (j-8). See them: corral jobs --name sweep-\n"


def test_a_clone_says_only_what_is_different() -> None:
    with scripted(lambda seen, n: as_json(JOB, status=201)) as server:
        flags = ["--gpus", "8", "--env", "A=1", "--queue", "auto", "--time", "none", "--after", "none"]
        result = corral("clone", "resnet", *flags, "--server", server.url, "--", "python", "train.py", "--gpus", "9")
    assert result.exit_code == 0, result.output
    assert server.requests[0].path == "/api/v1/jobs/resnet/clone"
    assert json.loads(server.requests[0].body) == {
        "gpus": 8,
        "env": {"A": "1"},
        "queue": None,
        "time": None,
        "after": [],
        "command": ["python", "train.py", "--gpus", "9"],
    }


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("stop",), "JOB is missing"),
        (("rm", "-y"), "JOB is missing"),
        (("stop", "j-1", "--array", "sweep"), "name jobs or an array, not both"),
        (("submit", "--after", ",", "--", "true"), "--after: which job?"),
    ],
)
def test_contradictory_arguments_are_refused(args: tuple[str, ...], message: str) -> None:
    result = corral(*args)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("typed", "is_noted"),
    [
        (("--", "true"), True),
        (("--gpus", "0", "--", "true"), False),
        (("-G", "1", "--", "true"), False),
        (("--package", "small", "--", "true"), False),
    ],
)
def test_a_user_at_a_terminal_is_reminded_of_gpus(
    typed: tuple[str, ...], is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "is_interactive", True)
    with scripted(lambda seen, n: as_json(JOB, status=201)) as server:
        result = corral("submit", "--server", server.url, *typed)
    assert ("asks for no GPU" in result.stderr) == is_noted
    monkeypatch.setattr(Terminal, "is_interactive", False)
    with scripted(lambda seen, n: as_json(JOB, status=201)) as server:
        assert corral("submit", "--server", server.url, *typed).stderr == ""


def test_a_user_at_a_terminal_learns_whether_a_share_is_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Terminal, "is_interactive", True)
    about = {"gpu_shares": {"enforced": False, "detail": "not enforced: the GPUs are virtual"}}

    def answers(seen: Seen, number: int) -> Answer:
        return as_json(about) if seen.path.endswith("/about") else as_json(JOB, status=201)

    with scripted(answers) as server:
        shared = corral("submit", "--server", server.url, "--gpus", "0.5", "--", "true")
        whole = corral("submit", "--server", server.url, "--gpus", "1", "--", "true")
    assert "Note: a share of a GPU is not enforced: the GPUs are virtual." in shared.stderr
    assert "share" not in whole.stderr


@pytest.mark.parametrize("command", ["submit", "run"])
def test_a_job_file_without_its_option_is_no_program(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text("gpus: 1\ncommand: python train.py\n")
    result = corral(command, "job.yaml")
    assert result.exit_code == 2
    assert f"Hint: Submit it: corral {command} -f job.yaml" in result.stderr
