"""ETags: which changes alter them, and which fields of requests they cover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from corral.server.http.preconditions import etag_of, is_match, shown_names

DOCUMENT = json.loads((Path(__file__).parents[4] / "docs" / "reference" / "openapi.json").read_text())
#: Secrets are changed by a request and never shown.
NEVER_SHOWN = {"password", "secret", "token", "url"}


def etag(content: object, *fields: str) -> str | None:
    return etag_of(json.dumps(content).encode(), fields)


def test_etag_changes_only_with_editable_fields() -> None:
    first = etag({"name": "a", "weight": 1, "running": 3}, "weight")
    assert first == etag({"name": "a", "weight": 1, "running": 4}, "weight")
    assert first != etag({"name": "a", "weight": 2, "running": 3}, "weight")


def test_units_and_other_names_are_covered() -> None:
    assert etag({"time_limit_seconds": 1}, "time") != etag({"time_limit_seconds": 2}, "time")
    assert etag({"users": ["ann"]}, "add_users") != etag({"users": ["ann", "bob"]}, "add_users")


def test_readings_inside_an_object_leave_it_alone() -> None:
    cold, hot = ({"gpus": [{"id": "g-1", "temperature": degrees}]} for degrees in (40, 80))
    assert etag(cold, "gpus") == etag(hot, "gpus")
    assert etag(cold, "gpus") != etag({"gpus": [{"id": "g-2", "temperature": 40}]}, "gpus")
    slow, quick = ({"elastic": {"min_gpus": 1, "max_gpus": 2, "utilization": use}} for use in (0.1, 0.9))
    assert etag(slow, "min_gpus", "max_gpus") == etag(quick, "min_gpus", "max_gpus")


def test_lists_and_texts_have_none() -> None:
    assert etag([1], "weight") is None
    assert etag_of(b"not json", ["weight"]) is None


def test_a_header_may_have_several_or_any() -> None:
    assert is_match('"a", "b"', '"b"')
    assert is_match("*", '"b"')
    assert not is_match('"a"', '"b"')


def test_every_field_of_every_edit_is_covered() -> None:
    missing = []
    for path, methods in DOCUMENT["paths"].items():
        if not {"get", "patch"} <= methods.keys():
            continue
        body = _schema(methods["patch"]["requestBody"])
        shown = _schema(methods["get"]["responses"]["200"])["properties"].keys()
        missing += [
            f"{path}: {field}"
            for field in body["properties"]
            if not shown_names([field]) & shown and field not in NEVER_SHOWN
        ]
    assert not missing


def _schema(part: dict[str, Any]) -> dict[str, Any]:
    name = part["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    found = DOCUMENT["components"]["schemas"][name]
    assert isinstance(found, dict)
    return found
