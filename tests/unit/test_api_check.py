"""The rules for the API's description: what they find."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.unit.scripts import load_script

check_api = load_script("check_api.py")
DOCUMENT = json.loads(check_api.DOCUMENT.read_text(encoding="utf-8"))


def changed(change: Any) -> list[str]:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    return list(check_api.problems(document))


def job(document: dict[str, Any]) -> dict[str, Any]:
    found = document["paths"]["/api/v1/jobs/{job}"]["get"]
    assert isinstance(found, dict)
    return found


def test_the_description_of_this_version_keeps_them() -> None:
    assert list(check_api.problems(DOCUMENT)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: job(d).pop("description"), "has no description"),
        (lambda d: job(d).update(description="the job"), "no whole sentence"),
        (lambda d: job(d).update(description="Those that wait."), "begins without a noun or a verb"),
        (
            lambda d: d["components"]["schemas"]["JobView"]["properties"]["gpus"].update(description="What it holds."),
            "schema JobView: gpus: the description begins without a noun or a verb",
        ),
        (lambda d: job(d).pop("summary"), "has no summary"),
        (lambda d: job(d).update(operationId="fetchJob"), "not in snake_case"),
        (lambda d: job(d).update(operationId="fetch_job"), "begins with 'fetch'"),
        (lambda d: job(d).update(operationId="list_jobs"), "2 operations have this operationId"),
        (lambda d: job(d)["responses"].pop("401"), "does not document 401"),
        (lambda d: job(d)["responses"]["404"].pop("content"), "answers 404 without a problem"),
        (lambda d: job(d)["parameters"][0].pop("description"), "does not describe its parameter 'job'"),
        (lambda d: d["components"]["schemas"]["JobCreate"].pop("examples"), "schema JobCreate: has no example"),
        (lambda d: d["components"]["schemas"]["JobCreate"].update(examples=[{"gpus": "x", "nope": 1}]), "not valid at"),
    ],
)
def test_a_broken_rule_is_found(change: Any, expected: str) -> None:
    assert any(expected in one for one in changed(change))
