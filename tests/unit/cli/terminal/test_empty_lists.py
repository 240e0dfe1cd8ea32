"""Hints of empty lists fit the reader: a scientist is not sent to a command of operators."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.runner import corral
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted

QUOTA = {"user": "ann", "kinds": {}, "volumes": {}}


@pytest.mark.parametrize("role", ["scientist", "operator"])
@pytest.mark.parametrize(
    ("typed", "answer", "command"),
    [
        ("quota show", QUOTA, "corral quota set"),
        ("reservation ls", {"items": [], "next_cursor": None}, "corral reservation create"),
        ("budget price ls", {"items": [], "currency": ""}, "corral budget price set"),
        ("health ls", {"items": [], "next_cursor": None}, "corral health run"),
        ("queue ls", {"items": [], "next_cursor": None}, "corral queue create"),
    ],
)
def test_the_hint_of_an_empty_list(role: str, typed: str, answer: dict[str, Any], command: str) -> None:
    def answered(seen: Seen, before: int) -> Answer:
        return as_json({"name": "ann", "role": role} if seen.path.endswith("/me") else answer)

    with scripted(answered) as server:
        result = corral(*typed.split(), CORRAL_SERVER=server.url)
    assert result.exit_code == 0
    assert result.stderr.strip()
    assert (command in result.stderr) == (role == "operator")
