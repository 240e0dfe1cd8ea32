"""`corral why`: one sentence about a job that does not wait, and a line for each reason of one that does."""

from __future__ import annotations

from typing import Any, cast

import pytest

from corral.cli.jobs.jobs import reason_line
from corral.client.views import ReasonView
from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import as_json, scripted


@pytest.mark.parametrize(
    ("state", "summary", "shown"),
    [
        ("running", "it does not wait: it is running", "j-1 is running: it does not wait."),
        (
            "failed",
            "it does not wait: it has ended (exit_code)",
            "j-1 is failed: it does not wait any more. How it ended: corral show j-1",
        ),
        ("queued", "it starts with the next cycle", "j-1 is queued: it starts with the next cycle"),
    ],
)
def test_a_job_that_no_rule_holds(state: str, summary: str, shown: str) -> None:
    rest: dict[str, Any] = {"reasons": [], "position": None, "ahead": [], "ahead_count": 0, "planned_start": None}
    answer = {"job_id": "j-1", "state": state, "summary": summary, **rest}
    with scripted(lambda seen, before: as_json(answer)) as server:
        result = corral("why", "j-1", CORRAL_SERVER=server.url)
    assert (result.exit_code, result.stdout) == (0, f"{shown}\n")


def test_a_job_that_a_reason_names_is_not_named_twice() -> None:
    reason = {"rule": "mount", "detail": "volume v1 is written by j-5 (train)", "jobs": ["j-5", "j-50"]}
    assert reason_line(cast("ReasonView", reason)) == "mount: volume v1 is written by j-5 (train) (j-50)"
    assert reason_line(cast("ReasonView", {**reason, "jobs": ["j-5"]})) == "mount: volume v1 is written by j-5 (train)"
