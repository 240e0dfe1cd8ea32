"""The client's types are generated from the OpenAPI description, and the committed modules are current."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("client_views", ROOT / "scripts" / "client_views.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_modules_are_current() -> None:
    generator = load_generator()
    written = {path.name: path.read_text(encoding="utf-8") for path in generator.TARGET.glob("*.py")}
    assert generator.render(json.loads(generator.DESCRIPTION.read_text(encoding="utf-8"))) == written, (
        "run: make openapi"
    )


def test_the_addresses_of_creating_requests_are_current() -> None:
    generator = load_generator()
    text = generator.render_creating(json.loads(generator.DESCRIPTION.read_text(encoding="utf-8")))
    assert text == generator.CREATING.read_text(encoding="utf-8"), "run: make openapi"
    assert 'r"/jobs",' in text


def test_a_schema_becomes_a_type() -> None:
    optional = {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "How many."}
    view = {
        "type": "object",
        "description": "A thing.",
        "properties": {
            "count": optional,
            "kind": {"$ref": "#/components/schemas/Kind"},
            "parts": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
        },
        "required": ["kind", "count"],
    }
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ThingView"}}}}
    operation = {"operationId": "get_thing", "tags": ["queues"], "responses": {"200": answer}}
    kind = {"type": "string", "enum": ["small", "large"]}
    modules = load_generator().render(
        {"components": {"schemas": {"ThingView": view, "Kind": kind}}, "paths": {"/thing": {"get": operation}}}
    )
    assert set(modules) == {"__init__.py", "scheduling.py"}
    assert modules["scheduling.py"].endswith(
        '''
Kind = Literal["small", "large"]


class ThingView(TypedDict):
    """A thing."""

    kind: Kind
    #: How many.
    count: int | None
    parts: NotRequired[list[dict[str, str]]]
'''
    )
