#!/usr/bin/env python3
"""Write the limits of the API's requests, docs/reference/openapi.json, for the forms of the console.

`make openapi` runs it; tests/unit/test_console_limits.py proves that the written file is current.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "reference" / "openapi.json"
TARGET = ROOT / "console" / "src" / "api" / "limits.ts"

HEAD = """\
/**
 * The limits of the API's requests, by body and field: of a number, a duration in seconds, or the length of a text.
 * Forms check them while a value is typed. The server has the final say.
 * Written by scripts/console_limits.py from docs/reference/openapi.json: do not edit.
 */
"""
#: The name of a limit in the console, by keyword of JSON Schema.
KEYWORDS = {"minimum": "least", "minLength": "least", "maximum": "most", "maxLength": "most"}
_REFERENCE = "#/components/schemas/"


def written(document: Mapping[str, Any]) -> str:
    """The TypeScript module for the request bodies of an API."""
    schemas = document["components"]["schemas"]
    blocks = []
    for name in sorted(request_bodies(document)):
        fields = {field: found for field, it in schemas[name].get("properties", {}).items() if (found := limits(it))}
        if fields:
            lines = [f"  {field}: {{ {_pairs(found)} }},\n" for field, found in fields.items()]
            blocks.append(f"export const {name} = {{\n{''.join(lines)}}} as const;\n")
    return HEAD + "\n" + "\n".join(blocks)


def request_bodies(document: Mapping[str, Any]) -> set[str]:
    """The names of all schemas that a request has as its body, in JSON."""
    found = set()
    for path in document["paths"].values():
        for operation in path.values():
            content = operation.get("requestBody", {}).get("content", {}) if isinstance(operation, dict) else {}
            reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
            if reference.startswith(_REFERENCE):
                found.add(reference.removeprefix(_REFERENCE))
    return found


def limits(schema: Mapping[str, Any]) -> dict[str, str]:
    """The limits of a field. One that may also be null, or a text instead of a number, has those of its number."""
    found = {KEYWORDS[word]: _number(schema[word]) for word in KEYWORDS if word in schema}
    found |= {_camel(word): _number(value) for word, value in schema.items() if word.startswith("x-")}
    if found:
        return dict(sorted(found.items()))
    options: Iterator[dict[str, str]] = (limits(option) for option in schema.get("anyOf", ()))
    return next(filter(None, options), {})


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in found.items())


def _number(value: float) -> str:
    text = str(int(value)) if value == int(value) else str(value)
    return re.sub(r"(?<=\d)(?=(\d{3})+$)", "_", text) if len(text) > 4 and text.isdecimal() else text


def _camel(word: str) -> str:
    first, *others = word.removeprefix("x-").split("-")
    return first + "".join(other.capitalize() for other in others)


def main() -> None:
    TARGET.write_text(written(json.loads(SOURCE.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
