"""Examples for the OpenAPI description: one for every schema of requests and answers.

Written ones where the fields depend on each other; else made from the schema, with usual values by the field's name.
"""

from __future__ import annotations

from typing import Any

#: Requests whose required fields alone would say little.
WRITTEN: dict[str, Any] = {
    "JobCreate": {"name": "resnet", "command": ["python", "train.py"], "gpus": 2, "time": "2h"},
    "JobArray": {"name": "sweep", "command": ["python", "train.py"], "gpus": 1, "time": "1h", "array": "0-99%8"},
    "JobBatch": {"jobs": [{"name": "one", "command": ["true"]}, {"name": "two", "command": ["true"]}]},
    "JobClone": {"name": "resnet-large", "gpus": 8, "time": "4h"},
    "JobEdit": {"priority": 3, "time": "4h"},
    "QueueCreate": {"name": "night", "policy": "priority", "max_gpus": 4, "max_seconds": "12h"},
    "QueueEdit": {"max_gpus": 8, "description": "Long trainings, at night"},
    "ReservationCreate": {
        "name": "demo", "pool": "default", "gpus": 4, "groups": ["vision"],
        "since": "2026-11-18T18:00:00Z", "until": "2026-11-18T20:00:00Z",
    },
    "Login": {"user": "ann", "password": "correct horse battery staple", "token_name": "laptop"},
    "UserCreate": {"name": "maria", "password": "correct horse battery staple", "role": "scientist"},
    "PoolCreate": {"name": "big", "gpus": ["a100-80g-001-gpu0", "a100-80g-001-gpu1"]},
    "VolumeCreate": {"name": "data", "type": "filesystem", "size": "100GiB"},
}  # fmt: skip
#: Usual values by the name of a field; used where the schema allows them.
VALUES: dict[str, Any] = {
    "action": "job.submitted", "actor": "ann", "address": "registry.example.org/team/train:1.4", "array": "0-9",
    "bucket": "lab-data", "client_id": "corral", "cluster": "local", "command": ["python", "train.py"], "cpus": 8,
    "description": "Fine-tunes ResNet-50", "detail": "no GPU is free", "duration": "4h", "email": "ann@example.org",
    "exit_code": 0, "gpu": "a100-80g-001-gpu0", "gpus": 2, "group": "vision", "health": "healthy", "id": "j-12",
    "job": "j-12", "jobs": 1, "kind": "training", "memory": "64GiB", "message": "fans are ordered", "model": "A100-80G",
    "name": "resnet", "node": "a100-80g-001", "owner": "ann", "path": "runs/7", "pool": "default", "priority": 5,
    "queue": "default", "reason": "new fans", "role": "scientist", "state": "running", "subject": "j-12",
    "task": "training_task_1", "time": "2h", "title": "ResNet on our images", "type": "filesystem",
    "url": "https://example.org/hook", "user": "ann", "username": "robot", "users": ["ann"], "version": "latest",
}  # fmt: skip
TIME = "2026-11-18T09:30:00Z"
#: The pattern of digests.
DIGEST = "^[0-9a-f]{64}$"
DEEPEST = 6


def add_examples(schemas: dict[str, Any]) -> None:
    for name, schema in schemas.items():
        if "enum" in schema or schema.get("examples"):
            continue
        schema["examples"] = [WRITTEN[name] if name in WRITTEN else example_of(schema, schemas)]


def example_of(schema: dict[str, Any], schemas: dict[str, Any], name: str = "", depth: int = 0) -> Any:
    """A value that the schema allows."""
    if "$ref" in schema:
        wanted = schema["$ref"].rpartition("/")[2]
        return WRITTEN.get(wanted) or example_of(schemas[wanted], schemas, name, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        usual = VALUES.get(name)
        return usual if usual in schema["enum"] else schema["enum"][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            options = [option for option in schema[word] if option.get("type") != "null"] or schema[word]
            return example_of(options[0], schemas, name, depth)
    return _by_type(schema, schemas, name, depth)


def _by_type(schema: dict[str, Any], schemas: dict[str, Any], name: str, depth: int) -> Any:
    kind = schema.get("type")
    usual = VALUES.get(name)
    if kind == "object" or "properties" in schema:
        return _object(schema, schemas, depth)
    if kind == "array":
        if schema.get("minItems", 0) == 0 and depth >= DEEPEST:
            return []
        if isinstance(usual, list) and schema.get("items", {}).get("type") == "string":
            return usual
        return [example_of(schema.get("items", {}), schemas, name.removesuffix("s"), depth + 1)] * max(
            1, schema.get("minItems", 1)
        )
    if kind in ("integer", "number"):
        value = usual if isinstance(usual, int) else 1
        low = schema.get("minimum", schema.get("exclusiveMinimum", value))
        return min(max(value, low), schema.get("maximum", max(value, low)))
    if kind == "boolean":
        return bool(schema.get("default", True))
    return _text(schema, name, usual) if kind == "string" else None


def _object(schema: dict[str, Any], schemas: dict[str, Any], depth: int) -> dict[str, Any]:
    required = schema.get("required", [])
    return {
        field: example_of(property_schema, schemas, field, depth + 1)
        for field, property_schema in schema.get("properties", {}).items()
        if field in required
    }


def _text(schema: dict[str, Any], name: str, usual: Any) -> str:
    if schema.get("format") == "date-time" or name.endswith("_at") or name in ("since", "until", "at"):
        return TIME
    if schema.get("pattern") == DIGEST:
        return "0" * 64
    text = usual if isinstance(usual, str) else name.replace("_", "-") or "text"
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
