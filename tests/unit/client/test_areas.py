"""The areas of the client are loaded at their first use, and are those that its type declares."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import corral
import corral.client
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


def test_the_package_has_the_names_of_the_sdk() -> None:
    assert set(corral.client.__all__) <= set(dir(corral))
    assert all(getattr(corral, name) is getattr(corral.client, name) for name in corral.client.__all__)


@pytest.mark.parametrize("area", sorted(module._AREAS))
def test_every_method_of_an_area_is_explained(area: str) -> None:
    with Client("http://127.0.0.1:1") as client:
        methods = inspect.getmembers(type(getattr(client, area)), inspect.isfunction)
    assert [name for name, method in methods if not name.startswith("_") and not inspect.getdoc(method)] == []
