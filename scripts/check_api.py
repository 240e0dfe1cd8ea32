"""Checks the description of the API (docs/reference/openapi.json) against the rules of this project.

    python scripts/check_api.py

Operations: a summary, a description of whole sentences, one tag, an operationId that begins with a verb that fits
the method, documented errors. Parameters: a description, snake_case (headers as HTTP writes them). Schemas: an example
that the schema allows. Descriptions begin with a noun or a verb.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

DOCUMENT = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"
#: Descriptions name the thing first: "Jobs that wait", and not "Those that wait".
CLAUSES = re.compile(r"(what|which|who|whose|how|when|those|that|its|it|the newest|all of them)\b", re.IGNORECASE)
METHODS = ("get", "post", "put", "patch", "delete")
#: Verbs with which operations begin, by method. A POST is an act of its own and may begin with any verb but these.
VERBS = {
    "get": {
        "begin", "checksum", "count", "diff", "download", "estimate", "export", "finish", "get", "healthz", "list",
        "preview", "read", "readyz", "search", "stat", "stream", "why",
    },
    "put": {"make", "put", "set", "share", "start", "tag"},
    "patch": {"edit"},
    "delete": {"abort", "delete", "release", "stop", "untag"},
}  # fmt: skip
#: Reading by POST, because the question is too large for an address.
POST_READS = {"get_dataset_pieces", "list_dataset_pieces"}
#: Answers without a body in JSON, or without a sign-in.
OPEN = {"login", "list_providers", "begin_sign_in", "finish_sign_in", "healthz", "readyz"}


def problems(document: dict[str, Any]) -> Iterator[str]:
    ids = Counter(operation["operationId"] for _, _, operation in operations(document))
    yield from (f"{name}: {count} operations have this operationId" for name, count in ids.items() if count > 1)
    for path, method, operation in operations(document):
        place = f"{method.upper()} {path}"
        for found in (
            *_texts(operation), *_name(method, operation["operationId"]), *_errors(path, operation),
            *_parameters(operation),
        ):  # fmt: skip
            yield f"{place}: {found}"
    yield from _fields(document["components"]["schemas"])
    yield from _examples(document["components"]["schemas"], document)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


def _texts(operation: dict[str, Any]) -> Iterator[str]:
    if not operation.get("summary"):
        yield "has no summary"
    description = operation.get("description", "").strip()
    if not description:
        yield "has no description"
    elif description[-1] not in ".)" or not (description[0].isupper() or description[0] in "`"):
        yield f"the description is no whole sentence: {description[:60]!r}"
    elif CLAUSES.match(description):
        yield f"the description begins without a noun or a verb: {description[:60]!r}"
    if len(operation.get("tags", [])) != 1:
        yield "must have one tag"


def _name(method: str, name: str) -> Iterator[str]:
    if not re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", name):
        yield f"operationId {name!r} is not in snake_case"
    verb = name.partition("_")[0]
    if method in VERBS and verb not in VERBS[method]:
        yield f"operationId {name!r} begins with {verb!r}; {method.upper()} uses {', '.join(sorted(VERBS[method]))}"


def _errors(path: str, operation: dict[str, Any]) -> Iterator[str]:
    answers = operation["responses"]
    if not any(status.startswith(("2", "3")) for status in answers):
        yield "documents no success"
    wanted = set() if operation["operationId"] in OPEN else {"401", "403", "422", "503"}
    wanted |= {"400", "413"} if "requestBody" in operation else set()
    yield from (f"does not document {status}" for status in sorted(wanted - answers.keys()))
    if "{" in path and not answers.keys() & {"404", "403"}:
        yield "has a path parameter and documents neither 404 nor 403"
    for status, answer in answers.items():
        if status.startswith(("4", "5")) and "application/problem+json" not in answer.get("content", {}):
            yield f"answers {status} without a problem"
        if not answer.get("description"):
            yield f"does not describe {status}"


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    for one in operation.get("parameters", []):
        if not one.get("description"):
            yield f"does not describe its parameter {one['name']!r}"
        if one["in"] != "header" and not re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", one["name"]):
            yield f"parameter {one['name']!r} is not in snake_case"


def _fields(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        for field, found in {"": schema, **schema.get("properties", {})}.items():
            description = found.get("description", "")
            if CLAUSES.match(description):
                yield f"schema {name}: {field}: the description begins without a noun or a verb: {description[:60]!r}"


def _examples(schemas: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        if "enum" in schema:
            continue
        if not schema.get("examples"):
            yield f"schema {name}: has no example"
            continue
        validator = Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": document["components"]})
        for error in validator.iter_errors(schema["examples"][0]):
            where = "/".join(str(part) for part in error.absolute_path)
            yield f"schema {name}: the example is not valid at {where or 'its top'}: {error.message[:120]}"


def main() -> int:
    found = list(problems(json.loads(DOCUMENT.read_text(encoding="utf-8"))))
    for one in found:
        print(one)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
