"""`logs -f` and `run` give the state, the exit code, the reason and a hint, and exit with the job's code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import Answer, Seen, as_json, problem, scripted, stream

LOG = 'id: 1:3\nevent: log\ndata: {"text": "hi\\n"}\n\n'


def job(state: str, reason: str, code: int | None, message: str, number: int = 1) -> dict[str, Any]:
    ended = {"state": state, "end_reason": reason, "exit_code": code, "message": message, "ended_at": "2026-01-01"}
    return {"id": "j-1", "name": "job-001", "number": number, "attempt": number, "attempts": [], **ended}


def server(view: dict[str, Any], *attempts: dict[str, Any]) -> Any:
    def answer(seen: Seen, before: int) -> Answer:
        if "/logs" in seen.path:
            end = {"state": view["state"], "exit_code": view["exit_code"]}
            return stream(f"{LOG}event: end\ndata: {json.dumps(end)}\n\n")
        if seen.path.endswith("/attempts"):
            return as_json({"items": list(attempts)})
        return as_json(view)

    return scripted(answer)


@pytest.mark.parametrize(
    ("view", "code", "line", "hint"),
    [
        (job("failed", "exit_code", 3, "exit code 3"), 3, "-- j-1 failed, exit code 3", "corral logs j-1 --tail 20"),
        (
            job("failed", "launch_error", None, "/x: No such file"),
            1,
            "-- j-1 failed: launch_error; /x: No such file",
            "",
        ),
        (
            job("failed", "timed_out", 143, "exit code 143; ran longer than 3 s"),
            143,
            "-- j-1 failed, exit code 143: timed_out; ran longer than 3 s",
            "corral clone j-1 --time",
        ),
        (
            job("failed", "node_lost", None, "node n1 was lost"),
            1,
            "-- j-1 failed: node_lost; node n1 was lost",
            "start",
        ),
        (job("stopped", "dependency_failed", None, "j-0 failed"), 1, "-- j-1 stopped: dependency_failed; j-0", "j-1"),
    ],
)
def test_the_end_of_a_followed_log(view: dict[str, Any], code: int, line: str, hint: str) -> None:
    with server(view) as api:
        result = corral("logs", "-f", "j-1", CORRAL_SERVER=api.url)
        as_document = corral("logs", "-f", "-o", "json", "j-1", CORRAL_SERVER=api.url)
    assert (result.exit_code, result.stdout) == (code, "hi\n")
    shown, hinted = result.stderr.splitlines()
    assert shown.startswith(line)
    assert hinted.startswith("Hint: ")
    assert hint in hinted
    fields = ("state", "exit_code", "end_reason", "message")
    assert json.loads(as_document.stdout.splitlines()[-1]) == {field: view[field] for field in fields}


def test_a_completed_job_has_no_hint() -> None:
    with server(job("completed", "exit_code", 0, "exit code 0")) as api:
        result = corral("logs", "-f", "j-1", CORRAL_SERVER=api.url)
    assert (result.exit_code, result.stderr) == (0, "-- j-1 completed, exit code 0\n")


def test_an_earlier_attempt_ends_with_its_own_code() -> None:
    """The job itself runs on: its state says nothing about the attempt."""
    view = {**job("running", "", None, "", number=2), "end_reason": None, "ended_at": None}
    first = {**job("failed", "exit_code", 75, "exit code 75"), "id": "j-1.1", "number": 1}
    with server(view, first) as api:
        result = corral("logs", "-f", "--attempt", "1", "j-1", CORRAL_SERVER=api.url)
    assert result.exit_code == 75
    assert result.stderr == "-- attempt j-1.1 ended, exit code 75\n-- j-1 is running\n"


def test_a_reason_that_cannot_be_read_is_noted() -> None:
    def answer(seen: Seen, before: int) -> Answer:
        if "/logs" in seen.path:
            return stream('event: end\ndata: {"state": "failed", "exit_code": 4}\n\n')
        return problem(500, detail="the store is away")

    with scripted(answer) as api:
        result = corral("logs", "-f", "j-1", CORRAL_SERVER=api.url)
    assert result.exit_code == 4
    assert "the reason of the end could not be read: the store is away" in result.stderr


def test_a_script_without_an_interpreter_gets_its_command_line() -> None:
    view = {**job("failed", "launch_error", None, "train.py: command not found"), "command": ["train.py"]}
    with server(view) as api:
        result = corral("logs", "-f", "j-1", CORRAL_SERVER=api.url)
    assert result.stderr.splitlines()[1] == "Hint: A script is started by its interpreter: `-- python3 train.py`."
