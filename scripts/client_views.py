#!/usr/bin/env python3
"""Write the client's types, src/corral/client/views/*.py, and http/creating_paths.py, from the OpenAPI description.

One module per area. Objects become TypedDicts, enumerations become Literals. An operation's area follows from its tag.
A type that several areas use is written into the module of the area that is named first in AREAS, so modules import
only from modules of areas named before, and imports have no cycles.

`make openapi` runs it; tests/unit/client/test_views.py proves that the written modules are current.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DESCRIPTION = ROOT / "docs" / "reference" / "openapi.json"
TARGET = ROOT / "src" / "corral" / "client" / "views"
CREATING = ROOT / "src" / "corral" / "client" / "http" / "creating_paths.py"

#: Each area with a line that describes its module, and the tags of its operations.
AREAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "people": (
        "Users, groups, permissions, quotas, tokens, sign-in and the audit log.",
        ("users", "me", "groups", "quotas", "budgets", "secrets", "sign-in", "sign-in providers", "events"),
    ),
    "jobs": (
        "Jobs, attempts, logs, checkpoints, tasks, presets and images.",
        ("jobs", "files", "tasks", "presets", "images"),
    ),
    "fleet": (
        "Clusters, nodes, GPUs, maintenance windows, pools, flavors and packages.",
        ("fleet", "maintenance", "pools", "catalog"),
    ),
    "scheduling": (
        "Queues, waiting lines, reservations, receipts of preemptions and the accuracy of estimated starts.",
        ("queues", "reservations", "receipts", "estimates"),
    ),
    "workbenches": ("Workbenches.", ("workbenches",)),
    "storage": ("Volumes, their files and object stores.", ("volumes", "volume files", "object stores")),
    "datasets": ("Datasets, their versions, targets and lineage.", ("datasets",)),
    "monitoring": ("Measurements and their history.", ("measurements",)),
    "alerts": ("Alerts, rules, silences, channels and deliveries.", ("alerts", "channels")),
    "reports": ("Reports, their schedules and the analysis of usage.", ("reports", "analysis")),
    "whatif": ("Simulations and the shadow policy.", ("simulations",)),
    "system": ("The installation: version, parts, licence and settings.", ("system",)),
}

#: The server's name for a page of items; the client iterates over the items.
PAGE = "ListView_"
NOTE = "Generated from docs/reference/openapi.json by `make openapi`: do not edit."
WIDTH = 120
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

Schema = Mapping[str, Any]


def render(description: Schema) -> dict[str, str]:
    """The text of every module, by file name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _modules(description).items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(ROOT / "pyproject.toml"), folder]
        subprocess.run(command, check=True)
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.py"))}


def render_creating(description: Schema) -> str:
    """The module with the addresses of creating requests: those that accept an idempotency key."""
    paths = sorted(
        re.sub(r"\{\w+\}", "[^/]+", path.removeprefix("/api/v1"))
        for path, operations in description["paths"].items()
        if any(one["name"] == "Idempotency-Key" for one in operations.get("post", {}).get("parameters", ()))
    )
    lines = ['"""Addresses of requests that create something, as regular expressions.', "", NOTE, '"""', ""]
    return "\n".join([*lines, "CREATING_PATHS = (", *(f'    r"{path}",' for path in paths), ")", ""])


def _modules(description: Schema) -> dict[str, str]:
    schemas: Mapping[str, Schema] = description["components"]["schemas"]
    homes = _homes(description, schemas)
    modules = {"__init__.py": _package(homes)}
    for area in AREAS:
        names = [name for name, home in homes.items() if home == area]
        if names:
            modules[f"{area}.py"] = _module(area, names, schemas, homes)
    return modules


def _homes(description: Schema, schemas: Mapping[str, Schema]) -> dict[str, str]:
    """The area of every type that a request or a successful answer uses. A type comes after those that it uses."""
    used: dict[str, list[str]] = {area: [] for area in AREAS}
    for operations in description["paths"].values():
        for operation in operations.values():
            answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            used[_area(operation)] += _references([operation.get("requestBody"), answers, operation.get("parameters")])
    homes: dict[str, str] = {}

    def add(name: str, area: str) -> None:
        if name in homes:
            return
        for other in sorted(set(_references(schemas[name]))):
            add(other, area)
        if not name.startswith(PAGE):
            homes[name] = area

    for area, names in used.items():
        for name in sorted(set(names)):
            add(name, area)
    return homes


def _area(operation: Schema) -> str:
    (tag,) = operation["tags"]
    for area, (_, tags) in AREAS.items():
        if tag in tags:
            return area
    raise SystemExit(f"operation {operation['operationId']}: give the tag {tag!r} to an area in {Path(__file__).name}")


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def _package(homes: Mapping[str, str]) -> str:
    lines = ['"""The types of the requests and answers of the API.', "", NOTE, ""]
    lines += ["Times are RFC 3339 strings in UTC, sizes are bytes. GPUs and CPUs are numbers: 0.5 is half of one."]
    lines += ['"""', ""]
    for area in sorted(set(homes.values())):
        lines.append(_import(area, [name for name, home in homes.items() if home == area]))
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(homes)), "]"]
    return "\n".join(lines)


def _import(area: str, names: list[str]) -> str:
    return f"from corral.client.views.{area} import {', '.join(sorted(names, key=_import_order))}"


def _import_order(name: str) -> tuple[str, str]:
    """As ruff sorts names."""
    return name.lower(), name


def _module(area: str, names: list[str], schemas: Mapping[str, Schema], homes: Mapping[str, str]) -> str:
    body = "\n\n\n".join(_type(name, schemas[name]) for name in names)
    words = ("Any", "Literal", "NotRequired", "TypedDict")
    used = [word for word in words if re.search(rf"^[^#\n]*\b{word}\b", body, re.MULTILINE)]
    imports = [f"from typing import {', '.join(used)}"]
    foreign = {name for own in names for name in _references(schemas[own]) if homes[name] != area}
    if foreign:
        imports.append("")
    others = sorted({homes[name] for name in foreign})
    imports += [_import(other, [name for name in foreign if homes[name] == other]) for other in others]
    if body.startswith("class "):
        imports.append("")
    return "\n".join([f'"""{AREAS[area][0]}', "", NOTE, '"""', "", *imports, "", body])


def _type(name: str, schema: Schema) -> str:
    if "enum" in schema:
        return "\n".join([*_comment(schema, ""), f"{name} = {_literal(schema['enum'])}"])
    fields: Mapping[str, Schema] = schema["properties"]
    required: list[str] = schema.get("required", [])
    # The list of required fields keeps the order of the server's class; the fields themselves are sorted by name.
    spelled = {key: _spelled(fields[key]) for key in required}
    spelled |= {key: f"NotRequired[{_spelled(fields[key])}]" for key in fields if key not in spelled}
    if any(keyword.iskeyword(key) for key in fields):
        listed = [f'        "{key}": {type_},' for key, type_ in spelled.items()]
        return "\n".join([f"{name} = TypedDict(", f'    "{name}",', "    {", *listed, "    },", ")"])
    lines = [f"class {name}(TypedDict):"]
    if schema.get("description"):
        lines += [*_docstring(schema["description"]), ""]
    for key, type_ in spelled.items():
        lines += [*_comment(fields[key], "    "), f"    {key}: {type_}"]
    return "\n".join(lines)


def _spelled(schema: Schema) -> str:
    """A schema as a type."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            types = dict.fromkeys(part for one in schema[key] for part in _spelled(one).split(" | "))
            # Every int is a float for a type checker.
            return " | ".join(part for part in types if part != "int" or "float" not in types)
    if "const" in schema:
        return _literal([schema["const"]])
    if "enum" in schema:
        return _literal(schema["enum"])
    if schema.get("type") == "array":
        return f"list[{_spelled(schema.get('items', {}))}]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if values is True else _spelled(values)}]"
    return PLAIN[schema["type"]] if "type" in schema else "Any"


def _literal(values: list[Any]) -> str:
    return f"Literal[{', '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"


def _comment(schema: Schema, indent: str) -> list[str]:
    text = " ".join(schema.get("description", "").split())
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}#: ", subsequent_indent=f"{indent}#: ") if text else []


def _docstring(description: str) -> list[str]:
    text = " ".join(description.replace("\\", "\\\\").split())
    return textwrap.wrap(f'"""{text}"""', WIDTH, initial_indent="    ", subsequent_indent="    ")


def main() -> None:
    """Write the modules, and remove those of areas that are gone."""
    description = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    modules = render(description)
    CREATING.write_text(render_creating(description), encoding="utf-8")
    for path in TARGET.glob("*.py"):
        if path.name not in modules:
            path.unlink()
    for name, text in modules.items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
