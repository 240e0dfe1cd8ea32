"""Values of options and arguments are completed by the server's names of their noun."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main

from corral.cli.terminal.completion import BY_VALUE
from tests.unit.cli.runner import COMMAND
from tests.unit.client.scripted_server import Answer, Seen, as_json, scripted

NAMES = {
    "/volumes": {"name": "data", "kind": "block"},
    "/images": {"name": "torch", "address": "registry.example.org/torch"},
    "/gpus": {"id": "GPU-1", "model": "A100-80G"},
    "/pools": {"name": "big", "model": "A100-80G"},
    "/secrets": {"name": "wandb"},
    "/nodes": {"id": "gpu-03", "state": "ready"},
    "/alert-rules": {"name": "gpu-idle"},
    "/groups": {"name": "vision"},
}


def answer(seen: Seen, number: int) -> Answer:
    path = seen.path.removeprefix("/api/v1").partition("?")[0]
    if path == "/me":
        return as_json({"name": "ann", "role": "scientist"})
    return as_json({"items": [NAMES[path]], "next_cursor": None})


def completed(words: list[str], parameter: str, incomplete: str = "") -> list[str]:
    """The values that the shell offers for an option or argument of the command."""
    with scripted(answer) as server:
        found: Any = COMMAND
        ctx = typer.Context(found, info_name="corral")
        for word in words:
            found = found.commands[word]
            ctx = typer.Context(found, info_name=word, parent=ctx)
        ctx.params["server"] = server.url
        (wanted,) = [param for param in found.params if param.name == parameter]
        return [item.value for item in wanted.shell_complete(ctx, incomplete)]


@pytest.mark.parametrize(
    ("words", "parameter", "values"),
    [
        (["volume", "show"], "volume", ["data"]),
        (["image", "show"], "name", ["torch"]),
        (["image", "create"], "name", []),
        (["secret", "rm"], "name", ["wandb"]),
        (["pool", "show"], "name", ["big"]),
        (["gpus", "show"], "gpu", ["GPU-1"]),
        (["nodes", "show"], "node", ["gpu-03"]),
        (["submit"], "model", ["A100-80G"]),
        (["submit"], "image", ["torch"]),
        (["alert", "rule", "edit"], "name", ["gpu-idle"]),
        (["user", "create"], "group", ["vision"]),
        (["user", "show"], "name", ["ann"]),
    ],
)
def test_values_are_names_of_the_server(words: list[str], parameter: str, values: list[str]) -> None:
    assert completed(words, parameter) == values
    assert completed(words, parameter, "zzz") == []


def test_a_server_that_does_not_answer_gives_no_names() -> None:
    ctx: Any = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)), info_name="corral")
    ctx.params["server"] = "http://127.0.0.1:1"
    assert [value for complete in set(BY_VALUE.values()) for value in complete(ctx, "")] == []
