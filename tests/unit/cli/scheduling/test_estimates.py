"""Estimated starts as people read them."""

from __future__ import annotations

import json
import time
from typing import Any

from corral.cli.scheduling.estimates import start_text
from corral.cli.terminal import formats
from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import as_json, scripted

ACCURACY: dict[str, Any] = {
    "since": None,
    "estimates": 12,
    "started": 10,
    "before_p50": 0.5,
    "before_p90": 0.9,
    "median_error_seconds": 95,
    "by_horizon": [
        {
            "horizon": "< 1 h",
            "started": 10,
            "before_p50": 0.5,
            "before_p90": 0.9,
            "median_error_seconds": 95,
        }
    ],
    "recent": [],
}
WHY: dict[str, Any] = {
    "job_id": "j-7",
    "state": "queued",
    "summary": "",
    "reasons": [],
    "position": 1,
    "place": "by age",
    "ahead": [],
    "ahead_count": 0,
    "planned_start": None,
    "planned_nodes": [],
    "suggestions": [],
}


def test_accuracy_of_estimates_is_shown() -> None:
    with scripted(lambda seen, n: as_json(ACCURACY)) as server:
        result = corral("estimates", "--since", "7d", "--server", server.url)
        document = corral("estimates", "-o", "json", "--server", server.url)
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["<", "1", "h", "10", "50%", "90%", "1m35s"]
    assert lines[2].split() == ["all", "10", "50%", "90%", "1m35s"]
    assert lines[3] == "From 12 estimates; 2 of them still wait."
    assert json.loads(document.stdout) == ACCURACY
    assert server.requests[0].path.startswith("/api/v1/estimates/accuracy")


def test_nothing_to_tell_yet() -> None:
    nothing = ACCURACY | {"estimates": 0, "started": 0, "by_horizon": [], "before_p50": None, "before_p90": None}
    with scripted(lambda seen, n: as_json(nothing)) as server:
        result = corral("estimates", "--server", server.url)
    assert "No estimate can be checked yet" in result.output


def test_why_says_when_and_where_that_comes_from() -> None:
    now = time.time()
    estimate = {
        "p50": formats.rfc3339(now + 720.5),
        "p90": formats.rfc3339(now + 3400.5),
        "made_at": formats.rfc3339(now),
        "basis": "the scheduler run forward 9 times",
    }
    with scripted(lambda seen, n: as_json(WHY | {"estimate": estimate})) as server:
        result = corral("why", "j-7", "--server", server.url)
    line = next(each for each in result.stdout.splitlines() if each.startswith("Expected to start around "))
    assert "(p50, in 1" in line
    assert "(p90, in 5" in line
    assert "  the scheduler run forward 9 times" in result.stdout
    with scripted(lambda seen, n: as_json(WHY | {"estimate": None})) as server:
        assert "Expected to start" not in corral("why", "j-7", "--server", server.url).stdout


def test_a_dry_run_says_when_after_whom_and_preempting_whom() -> None:
    now = time.time()
    plan: dict[str, Any] = {
        "outcome": "wait",
        "detail": "2 jobs are in front of it",
        "start_at": None,
        "nodes": [],
        "reasons": [],
        "ahead_count": 7,
        "estimate": {"p50": formats.rfc3339(now + 720.5), "p90": formats.rfc3339(now + 3400.5)},
        "would_start": {
            "at": formats.rfc3339(now + 720.5),
            "nodes": [],
            "after": ["j-1", "j-2"],
            "preempting": [
                {"job": "j-5", "rule": "guarantee", "lost_gpu_seconds": 90},
                {"job": None, "rule": "order", "lost_gpu_seconds": 0},
            ],
        },
    }
    with scripted(lambda seen, n: as_json(plan)) as server:
        lines = corral("submit", "--dry-run", "--server", server.url, "true").stdout.splitlines()
    assert lines[1].startswith("  expected to start around ")
    assert lines[2] == "  behind 7 jobs: j-1, j-2"
    assert lines[3] == "  preempting j-5 by the rule guarantee, which loses 1m30s of GPU time"
    assert lines[4] == "  preempting a job by the rule order, which loses 0s of GPU time"


def test_a_table_shows_the_likely_start_and_never_one_after_the_planned_start() -> None:
    now = 1_700_000_000.0
    soon, later = formats.rfc3339(now + 21), formats.rfc3339(now + 180)
    assert start_text(later, {"p50": soon, "p90": later}, now) == "about in 21s"
    assert start_text(None, {"p50": soon, "p90": later}, now) == "about in 21s"
    assert start_text(soon, {"p50": later, "p90": later}, now).startswith("by ")
    assert start_text(later, None, now).endswith("(in 3m)")
    assert start_text(None, None, now) == formats.NOTHING
