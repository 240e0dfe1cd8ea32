"""The areas of the client are loaded at their first use, and are those that its type declares."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from corral.client import client as module
from corral.client.client import Client


def declared() -> dict[str, str]:
    """Name and class of the areas that type checkers see."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    kind = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Client")
    return {
        ast.unparse(node.target): ast.unparse(node.annotation)
        for block in kind.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.AnnAssign)
    }


def test_every_declared_area_is_there_once() -> None:
    with Client("http://127.0.0.1:1") as client:
        kinds = {name: type(getattr(client, name)).__name__ for name in declared()}
        assert kinds == declared()
        assert client.jobs is client.jobs
        assert set(declared()) <= set(dir(client))


def test_another_name_is_an_error() -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(AttributeError, match="'nope'"):
        getattr(client, "nope")  # noqa: B009
