"""`corral wait` ends like the first job that did not complete; `corral restart` does what the job's state allows."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def test_wait_has_a_longest_time() -> None:
    with scripted(lambda seen, before: as_json(job("a", "running"))) as server:
        result = corral("wait", "a", "--timeout", "0.01", CORRAL_SERVER=server.url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-2:] == [
        "Error: a is still running",
        "Hint: The job goes on: `corral show a` shows it.",
    ]


@pytest.mark.parametrize(
    ("states", "code", "last"),
    [
        ((job("a", "queued"), job("a", "starting"), job("a", "running")), 0, "a running"),
        ((job("a", "queued"), job("a", "failed", 7)), 7, "a failed (exit code 7)"),
        ((job("a", "completed", 0),), 0, "a completed (exit code 0)"),
        ((job("a", "created"),), 1, "Hint: corral start a"),
    ],
)
def test_wait_for_a_start(states: Sequence[dict[str, Any]], code: int, last: str) -> None:
    with scripted(lambda seen, before: as_json(states[min(before, len(states) - 1)])) as server:
        result = corral("wait", "a", "--for", "running", CORRAL_SERVER=server.url)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (code, last)


def test_wait_for_a_start_prints_the_job_as_json() -> None:
    with scripted(lambda seen, before: as_json(job("a", "running"))) as server:
        result = corral("wait", "a", "--for", "running", "-o", "json", CORRAL_SERVER=server.url)
    assert json.loads(result.stdout)["state"] == "running"


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
