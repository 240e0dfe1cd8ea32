"""`corral receipts`: victim, preempting job, cost, and when the victim is back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import as_json, scripted

RECEIPT: dict[str, Any] = {
    "id": 3,
    "at": "2026-01-03T10:00:00Z",
    "rule": "guarantee",
    "detail": "queue vision has 8 GPUs guaranteed and holds 4",
    "job": "j-12",
    "job_name": "borrowed",
    "user": "bob",
    "attempt": 1,
    "for_job": "j-31",
    "for_job_name": "urgent",
    "for_user": "ann",
    "gpus": 4,
    "lost_gpu_seconds": 120,
    "saved": None,
    "ended_at": None,
    "back_at": None,
    "expected_back": None,
}
OVER = {"saved": True, "lost_gpu_seconds": 2, "ended_at": "2026-01-03T10:00:05Z"}


def shown(*args: str, **changes: Any) -> tuple[str, list[str]]:
    """The output, and the requests."""
    page = {"items": [{**RECEIPT, **changes}], "next_cursor": None}
    with scripted(lambda seen, n: as_json(page)) as server:
        result = corral("receipts", *args, "--server", server.url)
    assert result.exit_code == 0, result.output
    return result.stdout, [request.path for request in server.requests]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ["j-12", "bob", "j-31", "ann", "guarantee", "≤ 2m", "stopping", "queue vision has 8 GPUs guaranteed"]),
        (OVER, ["2s", "yes"]),
        (OVER | {"saved": False}, ["no"]),
        (OVER | {"expected_back": {"p50": "2099-01-01T00:00:00Z", "p90": "2099-01-02T00:00:00Z"}}, ["expected in"]),
        (OVER | {"back_at": "2026-01-03T11:00:00Z"}, ["ago"]),
    ],
)
def test_a_receipt_in_one_line(changes: dict[str, Any], words: list[str]) -> None:
    text, _ = shown(**changes)
    line = text.splitlines()[1]
    assert [word for word in words if word not in line] == []


def test_filters_and_jobs_reach_the_server() -> None:
    assert shown("--rule", "order", "--user", "bob")[1][0].startswith("/api/v1/receipts?")
    assert shown("j-12")[1] == ["/api/v1/jobs/j-12/receipts"]
    text, _ = shown("-o", "json")
    assert json.loads(text)["items"][0]["for_user"] == "ann"


@pytest.mark.parametrize("args", [["j-12", "--user", "bob"], ["--rule", "whim"]])
def test_contradictory_filters_are_refused_without_a_request(args: list[str]) -> None:
    result = corral("receipts", *args)
    assert result.exit_code == 2
    assert "not both" in result.stderr or "there is no rule" in result.stderr
