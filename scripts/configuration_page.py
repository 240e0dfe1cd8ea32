"""Writes docs/reference/configuration-keys.md: every key of corral.yaml with type, default and meaning.

    python scripts/configuration_page.py

Types and defaults are those of the settings' models; the meaning is the comment `#:` above the field, and the docstring
of its section. docs/reference/configuration.md is the introduction, written by hand.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from corral.server.settings.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "configuration-keys.md"
HEAD = """# Every key of the configuration

Generated from the settings of the server by `make openapi`. [Configuration](configuration.md) explains where the file
is, which environment variables there are, and has an example.
"""


class Key(NamedTuple):
    name: str
    type: str
    default: str
    meaning: str


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The sections of the file, in its order."""
    for name, field in Settings.model_fields.items():
        model = _model(field.annotation)
        if model is not None:
            yield name, model


def keys(prefix: str, model: type[BaseModel]) -> Iterator[Key]:
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        inner = _model(field.annotation)
        if inner is not None:
            yield from keys(f"{prefix}.{name}", inner)
        else:
            shown = Key(
                name=f"{prefix}.{field.alias or name}",
                type=_type(field),
                default=_default(field),
                meaning=field.description or meanings.get(name, ""),
            )
            yield shown


def _model(annotation: Any) -> type[BaseModel] | None:
    for one in (annotation, *typing.get_args(annotation)):
        if inspect.isclass(one) and issubclass(one, BaseModel):
            return one
        for part in typing.get_args(one):
            if inspect.isclass(part) and issubclass(part, BaseModel):
                return part
    return None


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The comments `#:` above the fields."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base in (BaseModel, object) or not issubclass(base, BaseModel):
            continue
        lines = inspect.getsource(base).splitlines()
        tree = ast.parse(inspect.cleandoc("\n".join(lines)) if lines[0].startswith(" ") else "\n".join(lines))
        for node in tree.body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                row, comment = node.lineno - 2, []
                while row >= 0 and lines[row].strip().startswith("#:"):
                    comment.append(lines[row].strip()[2:].strip())
                    row -= 1
                if comment:
                    found[node.target.id] = " ".join(reversed(comment))
    return found


def _type(field: FieldInfo) -> str:
    words = _words(field.annotation)
    low = high = ""
    for one in field.metadata:
        if isinstance(one, annotated_types.Ge):
            low = f"from {_number(one.ge)}"
        elif isinstance(one, annotated_types.Gt):
            low = f"over {_number(one.gt)}"
        elif isinstance(one, annotated_types.Le):
            high = f"to {_number(one.le)}"
        elif isinstance(one, annotated_types.Lt):
            high = f"below {_number(one.lt)}"
    return " ".join(part for part in (words, low, high) if part)


def _number(value: Any) -> str:
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _words(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin is typing.Annotated:
        return _words(args[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(one) for one in args))
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in args)
    if origin in (tuple, list, frozenset):
        return f"list of {_words(args[0])}" if args else "list"
    if origin in (dict, typing.Mapping) or (inspect.isclass(origin) and issubclass(origin, typing.Mapping)):
        return "mapping"
    if annotation is type(None):
        return "null"
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in annotation)
    names = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)).lower())


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "null"
    value = getattr(value, "value", value)
    if isinstance(value, (tuple, frozenset)):
        value = list(value)
    if isinstance(value, Path):
        value = str(value)
    return f"`{value if isinstance(value, str) and value else json.dumps(value, default=str)}`"


def page() -> str:
    text = HEAD
    for name, model in sections():
        text += f"\n## `{name}`\n"
        if own := vars(model).get("__doc__"):
            text += f"{' '.join(own.split())}\n"
        text += "\n| key | type | default | meaning |\n|---|---|---|---|\n"
        for key in keys(name, model):
            cells = (f"`{key.name}`", key.type, key.default, key.meaning)
            text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def main() -> int:
    without = [key.name for name, model in sections() for key in keys(name, model) if not key.meaning]
    if without:
        print("no comment #: above", ", ".join(without), file=sys.stderr)  # noqa: T201
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
