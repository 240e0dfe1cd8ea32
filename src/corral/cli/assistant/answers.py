"""Small answers for assistants: the few fields of a view that a decision needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Longer texts are cut, with a note: an assistant can ask for a part of them.
MOST_CHARACTERS = 8000

_JOB = ("id", "name", "user", "state", "queue", "gpus", "nodes", "created_at", "started_at", "ended_at")
_END = ("end_reason", "exit_code", "message")


def job(view: Mapping[str, Any]) -> dict[str, Any]:
    """One line of a list of jobs."""
    found = _present(view, _JOB)
    if view.get("ended_at"):
        found |= _present(view, _END)
    elif (estimate := view.get("estimated_start")) is not None:
        found["estimated_start"] = estimate
    return found


def job_detail(view: Mapping[str, Any]) -> dict[str, Any]:
    allocation = view.get("allocation") or {}
    return {
        **job(view),
        **_present(
            view, ("command", "workdir", "image", "priority", "time_limit_seconds", "attempt", "retries", "after")
        ),
        "on_nodes": [grant["node"] for grant in allocation.get("grants", ())],
    }


def why(view: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_present(view, ("job_id", "state", "summary", "position", "ahead_count", "planned_start", "estimate")),
        "reasons": [_present(reason, ("rule", "detail")) for reason in view["reasons"]],
        "suggestions": [
            _present(suggestion, ("title", "detail", "change")) for suggestion in view.get("suggestions", ())
        ],
    }


def plan(view: Mapping[str, Any]) -> dict[str, Any]:
    found = _present(view, ("outcome", "detail", "nodes", "start_at", "ahead_count", "estimate"))
    found["reasons"] = [_present(reason, ("rule", "detail")) for reason in view["reasons"]]
    return found


def simulation(view: Mapping[str, Any]) -> dict[str, Any]:
    return _present(view, ("id", "name", "state", "error", "since", "until", "words", "headline"))


def analysis(view: Mapping[str, Any], limit: int) -> dict[str, Any]:
    findings = view["findings"]
    return {
        **_present(view, ("since", "until", "notes")),
        "findings": [_present(finding, ("severity", "subject", "text", "proposal")) for finding in findings[:limit]],
        "left_out": max(0, len(findings) - limit),
    }


def report(view: Mapping[str, Any]) -> dict[str, Any]:
    return _present(view, ("id", "title", "state", "error", "since", "until", "created_at"))


def cut(text: str) -> str:
    """The end of a long text."""
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"[the last {MOST_CHARACTERS} of {len(text)} characters]\n{text[-MOST_CHARACTERS:]}"


def cut_table(text: str) -> str:
    """The beginning of a long table: its last lines say nothing without the titles of the columns."""
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = text[:MOST_CHARACTERS].rpartition("\n")[0]
    return f"{kept}\n[the first {len(kept)} of {len(text)} characters]"


def _present(view: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: view[key] for key in keys if view.get(key) not in (None, "", [], {})}
