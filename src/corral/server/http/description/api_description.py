"""The API's OpenAPI description, and a plain page made from it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from corral.server.http.description.api_examples import add_examples
from corral.server.http.description.parameter_texts import describe_parameter
from corral.server.http.preconditions import IF_MATCH
from corral.server.http.problems import ProblemView
from corral.server.http.strict_route import is_editable, problems
from corral.server.system.idempotency import HEADER

TITLE = "corral"
DESCRIPTION = (
    "Jobs, queues, nodes and GPUs of a corral server. Errors are RFC 9457 problem details. "
    "Sign in with a bearer token, or with a session cookie plus the header X-CSRF-Token for changes."
)
_OPEN_OPERATIONS = frozenset({"login", "list_providers", "begin_sign_in", "finish_sign_in", "healthz", "readyz"})
_KEY_PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": (
        "A text of the client's choice. For a day, the same request with the same key is carried out once and "
        "answered alike; another request with the key is refused with 422."
    ),
    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
}
_ETAG_HEADER = {
    "description": "Changes with each edit of the object; for If-Match of PATCH.",
    "schema": {"type": "string"},
}
_RETRY_HEADER = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
_RATE_HEADER = {
    "description": "Attempts that remain (r) and the seconds until the next one (t), beside RateLimit-Policy.",
    "schema": {"type": "string"},
}
_MATCH_PARAMETER = {
    "name": IF_MATCH,
    "in": "header",
    "required": False,
    "description": (
        "The ETag of the object as the caller read it: the edit is refused with 412 if another edit came in between."
    ),
    "schema": {"type": "string", "maxLength": 1000},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, the same for every installation of one version."""
    if app.openapi_schema:
        return app.openapi_schema
    schema = get_openapi(title=TITLE, version=app.version, description=DESCRIPTION, routes=app.routes)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "corral_session"},
    }
    components.setdefault("schemas", {})["ProblemView"] = ProblemView.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    schema["security"] = [{"bearer": []}, {"session": []}]
    add_examples(components["schemas"])
    for path, operations in schema["paths"].items():
        if is_editable(app.routes, path):
            operations["patch"].setdefault("parameters", []).append(_MATCH_PARAMETER)
            operations["patch"]["responses"]["412"] = problems(412)[412]
            for method in ("get", "patch"):
                operations[method]["responses"]["200"]["headers"] = {"ETag": _ETAG_HEADER}
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                describe_parameter(parameter, operation["tags"][0])
            for answer in operation["responses"].values():
                if answer["description"] == "Successful Response":
                    answer["description"] = "Done"
            if "429" in operation["responses"]:
                operation["responses"]["429"]["headers"] = {"Retry-After": _RETRY_HEADER, "RateLimit": _RATE_HEADER}
            if operation["responses"].keys() & {"201", "202"}:
                operation.setdefault("parameters", []).append(_KEY_PARAMETER)
            is_open = operation["operationId"] in _OPEN_OPERATIONS
            if is_open:
                operation["security"] = []
            # Errors before every route: while reading the body, and in the sign-in check.
            everywhere = {400, 413} if "requestBody" in operation else set()
            everywhere |= set() if is_open else {403, 503}
            for status in everywhere:
                operation["responses"].setdefault(str(status), problems(status)[status])
    app.openapi_schema = schema
    return schema


def docs_page(schema: dict[str, Any]) -> str:
    """A list of all routes as plain HTML: no script, nothing from other servers."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            text = operation.get("description") or operation.get("summary", "")
            row = (
                f'<tr><td class="method">{method.upper()}</td><td class="path">{escape(path)}</td>'
                f"<td>{escape(text.splitlines()[0])}</td></tr>"
            )
            by_tag.setdefault(operation["tags"][0], []).append(row)
    sections = "\n".join(
        f"<h2>{escape(tag)}</h2>\n<table>\n{chr(10).join(rows)}\n</table>" for tag, rows in sorted(by_tag.items())
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>corral API</title>'
        '<link rel="stylesheet" href="/static/corral.css"></head>\n<body><h1>corral API</h1>\n'
        f"<p>{escape(DESCRIPTION)}</p>\n"
        '<p>For programs: <a href="/api/v1/openapi.json">openapi.json</a>.</p>\n'
        f"{sections}\n</body></html>\n"
    )


def dumps(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
