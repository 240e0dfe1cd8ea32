"""`corral wait` ends like the first job that did not complete; `corral restart` does what the job's state allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted


def job(name: str, state: str, code: int | None = None) -> dict[str, Any]:
    ended = "2026-01-01T00:00:00Z" if state in ("completed", "failed", "stopped") else None
    reason = None if ended is None else "exit_code"
    rest = {"allocation": None, "attempt": 1, "message": "", "end_reason": reason, "ended_at": ended}
    return {"id": name, "name": name, "state": state, "exit_code": code, **rest}


def test_wait_ends_like_the_first_job_that_did_not_complete() -> None:
    jobs = {"a": job("a", "completed", 0), "b": job("b", "failed", 7), "c": job("c", "failed", 9)}
    with scripted(lambda seen, before: as_json(jobs[seen.path.rpartition("/")[2]])) as server:
        result = corral("wait", "a", "b", "c", "a", CORRAL_SERVER=server.url)
        alone = corral("wait", "b", CORRAL_SERVER=server.url)
    assert (result.exit_code, result.stdout) == (7, "")
    assert result.stderr.splitlines() == [
        "a completed (exit code 0).",
        "b failed (exit code 7).",
        "c failed (exit code 9).",
    ]
    assert alone.exit_code == 7
    assert "Hint: Its last lines" in alone.stderr


def test_wait_waits() -> None:
    states = [job("a", "running"), job("a", "running"), job("a", "completed", 0)]
    with scripted(lambda seen, before: as_json(states[min(before, 2)])) as server:
        result = corral("wait", "a", CORRAL_SERVER=server.url)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "a running. Ctrl-C stops waiting, not the job.",
        "a completed (exit code 0)",
    ]


@pytest.mark.parametrize(
    ("state", "action"), [("running", "requeue"), ("starting", "requeue"), ("failed", "start"), ("created", "start")]
)
def test_restart(state: str, action: str) -> None:
    def answer(seen: Seen, before: int) -> Answer:
        return as_json(job("a", state if seen.method == "GET" else "queued"))

    with scripted(answer) as server:
        result = corral("restart", "a", CORRAL_SERVER=server.url)
    assert (result.exit_code, result.stdout) == (0, "a is queued\n")
    assert [seen.path.rpartition("/")[2] for seen in server.requests if seen.method == "POST"] == [action]
