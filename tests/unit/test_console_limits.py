"""The limits that the console's forms check are those of the API's description, and the committed file is current."""

from __future__ import annotations

import json

from tests.unit.scripts import load_script

generator = load_script("console_limits.py")


def test_the_committed_file_is_current() -> None:
    document = json.loads(generator.SOURCE.read_text(encoding="utf-8"))
    assert generator.TARGET.read_text(encoding="utf-8") == generator.written(document), "run: make openapi"


def test_bodies_of_requests_are_written_with_their_limits() -> None:
    def operation(name: str) -> dict[str, object]:
        return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}

    document = {
        "paths": {"/jobs": {"post": {"requestBody": operation("JobCreate")}, "get": {}, "parameters": []}},
        "components": {
            "schemas": {
                "JobCreate": {
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 63},
                        "hold": {"type": "boolean"},
                        "nodes": {"anyOf": [{"type": "integer", "minimum": 1.0, "maximum": 10000.0}, {"type": "null"}]},
                        "array": {"type": "string", "x-most-indexes": 1000},
                    }
                },
                "JobView": {"properties": {"name": {"type": "string", "maxLength": 63}}},
            }
        },
    }
    assert generator.written(document) == generator.HEAD + (
        "\nexport const JobCreate = {\n"
        "  name: { least: 1, most: 63 },\n"
        "  nodes: { least: 1, most: 10_000 },\n"
        "  array: { mostIndexes: 1000 },\n"
        "} as const;\n"
    )


def test_a_field_that_is_a_number_or_a_text_has_the_limits_of_the_number() -> None:
    duration = {"anyOf": [{"type": "number", "minimum": 0, "maximum": 3600}, {"type": "string"}]}
    assert generator.limits({"anyOf": [duration, {"type": "null"}]}) == {"least": "0", "most": "3600"}
    assert generator.limits({"type": "number", "maximum": 0.5}) == {"most": "0.5"}
    assert generator.limits({"type": "boolean"}) == {}
