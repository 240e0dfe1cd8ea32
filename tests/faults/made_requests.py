"""Requests made up from the API's description, about a few things with few names: so that many are about the same."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

#: What the values of fields and parameters are made of, by their names. A thing has the name of its kind and a letter.
LETTERS = "ab"
USERS = ("ann", "bob", "eve")
_THINGS = {
    "queue": "queue",
    "queues": "queue",
    "pool": "pool",
    "pools": "pool",
    "group": "group",
    "groups": "group",
    "flavor": "flavor",
    "package": "package",
    "permission_group": "permission-group",
    "volume": "volume",
    "dataset": "dataset",
    "store": "store",
    "object_store": "store",
    "target": "target",
    "image": "image",
    "login": "login",
    "credential": "login",
    "secret": "secret",
    "task": "task",
    "channel": "channel",
    "channels": "channel",
    "rule": "rule",
    "preset": "preset",
    "array": "array",
    "workbench": "workbench",
    "provider": "provider",
    "tag": "tag",
}
_KINDS_OF_PATHS = {
    "queues": "queue",
    "pools": "pool",
    "groups": "group",
    "permission-groups": "permission-group",
    "flavors": "flavor",
    "packages": "package",
    "volumes": "volume",
    "datasets": "dataset",
    "object-stores": "store",
    "dataset-targets": "target",
    "images": "image",
    "registry-logins": "login",
    "secrets": "secret",
    "channels": "channel",
    "alert-rules": "rule",
    "reservations": "reservation",
    "maintenance-windows": "window",
    "report-schedules": "schedule",
    "preset-assets": "asset",
    "workbenches": "workbench",
    "tasks": "task",
    "ssh-keys": "key",
    "tokens": "token",
    "providers": "provider",
    "jobs": "job",
    "jobs:batch": "job",
    "jobs:array": "job",
    "queues:delete": "queue",
    "flavors:delete": "flavor",
    "packages:delete": "package",
}
#: Requests that do not end, or end the story.
LEFT_OUT = {"stream_events", "login", "logout", "change_password", "step_down"}
#: Parameters: an answer that does not end, and places that no page has.
LEFT_AWAY = {"follow", "cursor"}
_SIZES = ("1MiB", "20MiB", 4096, "1GiB")
_TIMES = ("1s", "2m", 3600, "1d")


#: Bodies that are accepted, by operation; a name is added. "node", "gpu" and "moment" stand for one of them.
GOOD: dict[str, dict[str, Any]] = {
    "submit_job": {"name": None, "command": ["sleep", "20"], "gpus": 2},
    "submit_array": {"command": ["true"], "array": "0-2", "name": "array-a"},
    "create_workbench": {"hold": True},
    "create_queue": {"policy": "priority"},
    "create_pool": {"gpus": "gpu"},
    "create_group": {},
    "create_permission_group": {"functions": ["train"]},
    "create_flavor": {"cpus_per_gpu": 1},
    "create_package": {"gpus": 1, "cpus": 1},
    "create_image": {"address": "registry.example.org/train:1"},
    "create_volume": {"type": "filesystem", "size": "20MiB"},
    "create_dataset": {},
    "create_dataset_target": {"storage": {"kind": "directory", "path": "/nowhere"}},
    "create_object_store": {"kind": "s3", "bucket": "lab"},
    "create_channel": {"url": "json://127.0.0.1:9/hook"},
    "create_alert_rule": {"signal": "gpu-temperature", "threshold": 1},
    "create_silence": {"name": None, "duration": "1h"},
    "create_reservation": {"pool": "default", "gpus": 1, "since": "moment", "users": ["ann"]},
    "create_maintenance_window": {"nodes": "node", "until": "moment"},
    "create_report": {"name": None},
    "create_report_schedule": {"period": "daily"},
    "create_simulation": {"days": 1, "candidate": {}},
    "allocate_task": {"name": None, "task": "task-a", "gpus": 1},
    "put_secret": {"value": "the secret"},
    "create_token": {},
    "create_provider": {
        "name": None,
        "id": "provider-a",
        "kind": "github",
        "client_id": "corral",
        "client_secret": "s",
    },
    "set_price": {"name": None, "model": "A100-80G", "weight_micro": 1_000_000},
    "add_preset_asset": {"kind": "model", "source": "dataset:dataset-a"},
}


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    id: str
    parameters: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any] | None
    media: str
    statuses: frozenset[str]


def operations(description: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in description["paths"].items():
        for method, described in methods.items():
            media, content = next(iter(described.get("requestBody", {}).get("content", {}).items()), ("", None))
            if described["operationId"] not in LEFT_OUT:
                yield Operation(
                    method=method.upper(),
                    path=path,
                    id=described["operationId"],
                    parameters=tuple(described.get("parameters", ())),
                    schema=content and content["schema"],
                    media=media,
                    statuses=frozenset(described["responses"]),
                )


def _list_of(path: str) -> str:
    """The list that a route is about: `jobs` for /jobs, /jobs:array and /jobs/{job}/clone."""
    *_, found = [part for part in path.partition("{")[0].split("/") if part]
    return found.partition(":")[0]


@dataclass(slots=True)
class Made:
    """One request."""

    method: str
    path: str
    params: dict[str, Any]
    json: Any = None
    content: bytes | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.params or ''} {self.json if self.content is None else 'bytes'}"


@dataclass(slots=True)
class Maker:
    """Makes requests up."""

    rng: random.Random
    schemas: Mapping[str, Any]
    #: ids that answers have shown, by the list that they are in, newest last
    seen: dict[str, list[str]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()

    def creating(self, operation: Operation) -> Made | None:
        """A request for one of the few things, which succeeds if it is not there yet."""
        kind = self._kind_of(operation.path)
        body = GOOD.get(operation.id)
        if body is None:
            return None
        made = Made(operation.method, operation.path, {}, json=dict(body))
        if "{" in made.path:
            made.path = re.sub(r"{\w+}", lambda _: self._name(kind), made.path)
        else:
            made.json.setdefault("name", self._name(kind))
        for name, value in made.json.items():
            if value == "node":
                made.json[name] = [self.rng.choice(self.nodes)]
            elif value == "gpu":
                made.json[name] = [self.rng.choice(self.gpus)]
            elif value == "moment":
                made.json[name] = (datetime.now(UTC) + timedelta(hours=self.rng.randint(1, 90))).isoformat()
        made.json = {name: value for name, value in made.json.items() if value is not None}
        return made

    def request(self, operation: Operation) -> Made:
        if self.rng.random() < 0.5 and (created := self.creating(operation)) is not None:
            return created
        kind = self._kind_of(operation.path)
        values = {}
        params: dict[str, Any] = {}
        for parameter in operation.parameters:
            name, place, schema = parameter["name"], parameter["in"], parameter["schema"]
            if place == "path":
                values[name] = self._path_value(name, kind, schema, _list_of(operation.path))
            elif place == "query" and (parameter.get("required") or self.rng.random() < 0.15):
                params[name] = self._value(name, schema, kind, 0)
        path = operation.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe="/"))
        params = {name: value for name, value in params.items() if value is not None and name not in LEFT_AWAY}
        made = Made(operation.method, path, params)
        if operation.media == "application/json":
            made.json = self._value("body", operation.schema, kind, 0)
            self._tame(operation, made.json)
        elif operation.media:
            made.content = b"some bytes"
        return made

    def saw(self, operation: Operation, answer: Any) -> None:
        """Remembers the ids in an answer."""
        for one in answer.get("items", [answer]) if isinstance(answer, dict) else ():
            found = one.get("id") if isinstance(one, dict) else None
            if isinstance(found, str | int):
                self.seen.setdefault(_list_of(operation.path), []).append(str(found))

    # ------------------------------------------------------------------------------------------- inside

    def _kind_of(self, path: str) -> str:
        parts = [part for part in path.split("/") if not part.startswith("{")]
        return next((_KINDS_OF_PATHS[part] for part in reversed(parts) if part in _KINDS_OF_PATHS), "")

    def _name(self, kind: str) -> str:
        return f"{kind or 'thing'}-{self.rng.choice(LETTERS)}"

    def _id(self, place: str) -> str | None:
        known = self.seen.get(place, [])[-8:]
        return self.rng.choice(known) if known else None

    def _job(self) -> str:
        return (self._id("jobs") if self.rng.random() < 0.9 else None) or self._name("job")

    def _path_value(self, name: str, kind: str, schema: Mapping[str, Any], place: str) -> Any:
        if name in ("id", "alert", "operation", "silence", "token_id", "key", "upload", "delivery"):
            if kind == "provider":
                return self._name(kind)
            return self._id(place) or "1"
        if name == "name" and kind:
            return self._name(kind)
        if name == "name" or name == "user":
            return self.rng.choice(USERS)
        if name == "version":
            return self.rng.choice(["latest", "1", "2", "tag-a"])
        if name == "pack":
            return "0" * 64
        return self._value(name, schema, kind, 0)

    def _value(self, name: str, schema: Mapping[str, Any] | None, kind: str, depth: int) -> Any:
        rng = self.rng
        if schema is None:
            return None
        if "$ref" in schema:
            return self._value(name, self.schemas[schema["$ref"].rsplit("/", 1)[1]], kind, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        known = self._known(name, kind)
        if known is not None:
            accepts = {one.get("type") for one in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()))}
            if "array" in accepts and ("string" not in accepts or rng.random() < 0.3):
                return [known]
            if "string" in accepts or "number" in accepts or not accepts - {None}:
                return known
        for union in ("anyOf", "oneOf", "allOf"):
            if union in schema:
                return self._value(name, rng.choice(schema[union]), kind, depth)
        return self._plain(name, schema, kind, depth)

    def _plain(self, name: str, schema: Mapping[str, Any], kind: str, depth: int) -> Any:
        rng = self.rng
        match schema.get("type"):
            case "object":
                wanted = set(schema.get("required", ()))
                share = 0.25 if depth == 0 else 0.4
                return {
                    field: self._value(field, inner, kind, depth + 1)
                    for field, inner in schema.get("properties", {}).items()
                    if field in wanted or rng.random() < share
                }
            case "array":
                least = schema.get("minItems", 0)
                count = max(least, rng.randrange(3)) if depth < 4 else least
                return [self._value(name, schema.get("items", {}), kind, depth + 1) for _ in range(count)]
            case "integer":
                least = int(schema.get("minimum", 0))
                return rng.randint(least, max(least, min(int(schema.get("maximum", 3)), 3)))
            case "number":
                return rng.choice([0, 1, 0.5, 2])
            case "boolean":
                return rng.random() < 0.5
            case "string":
                if schema.get("format") == "date-time":
                    return self._moment()
                text = rng.choice(["some text", self._name(kind), "\u202eevil\x1b[31m", "=1+1", "<b>x</b>"])
                return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 500)]
            case _:
                return None

    def _known(self, name: str, kind: str) -> Any:
        rng = self.rng
        if name in ("user", "owner", "users", "add_users", "remove_users", "actor", "move_users"):
            return rng.choice(USERS)
        if name in ("job", "after", "before"):
            return self._job()
        if name in ("gpu", "gpus_named", "gpu_ids"):
            return rng.choice(self.gpus)
        if name in ("node", "nodes_named"):
            return rng.choice(self.nodes)
        if name in ("since", "until", "at", "drain_at", "expires_at"):
            return self._moment()
        if name in ("time", "duration", "max_seconds", "for", "for_seconds", "drain_before", "idle_stop", "grace"):
            return rng.choice(_TIMES)
        if name in ("size", "memory", "memory_per_gpu"):
            return rng.choice(_SIZES)
        if name == "path":
            return rng.choice(["a", "a/b", "out.txt", "/data", "a\nb"])
        if name == "url":
            return "http://127.0.0.1:9/hook"
        if name == "name":
            return self._name(kind)
        if name == "names":
            return self._name(kind)
        if name in _THINGS:
            return rng.choice([self._name(_THINGS[name]), "default"]) if "queue" in name else self._name(_THINGS[name])
        return None

    def _moment(self) -> str:
        return (datetime.now(UTC) + timedelta(minutes=self.rng.choice([-90, -5, 0, 5, 90, 3000]))).isoformat()

    def _tame(self, operation: Operation, body: Any) -> None:
        """Makes requests harmless, and succeed more often."""
        if not isinstance(body, dict):
            return
        jobs = body.get("jobs") if operation.id == "submit_jobs" else [body]
        if operation.id in ("submit_job", "submit_jobs", "submit_array", "plan_job", "clone_job", "edit_job"):
            for job in jobs or ():
                self._tame_job(operation, job)
        if operation.id == "create_workbench":
            body["hold"] = True
        if operation.id == "run_preset":
            body["overrides"] = {"hold": True}
        if operation.id == "start_program":
            body.clear()
            body["command"] = ["true"]
        if operation.id in ("create_user", "edit_user"):
            body.update(password="password-of-the-user") if operation.id == "create_user" else body.pop(
                "disabled", None
            )
        for name in ("nodes", "gpus"):
            if name in body and isinstance(body[name], list):
                body[name] = [self.rng.choice(getattr(self, name))]

    def _tame_job(self, operation: Operation, job: dict[str, Any]) -> None:
        rng = self.rng
        for name in ("mounts", "image", "venv", "workdir", "git", "git_ref", "git_dir", "git_secret", "app", "kind"):
            if rng.random() < 0.85:
                job.pop(name, None)
        if rng.random() < 0.7:
            for name in ("flavor", "package", "labels", "model", "secrets", "commit", "port", "array", "pack", "env"):
                job.pop(name, None)
        if operation.id != "edit_job" and "command" in job:
            job["command"] = rng.choice([["true"], ["false"], ["sleep", "0.3"], ["sleep", "60"]])
        if "gpus" in job:
            job["gpus"] = rng.choice([0, 0.5, 1, 2, 2, 4])
        if operation.id == "submit_array":
            job["array"] = "0-2"
            job["name"] = self._name("array")
        if isinstance(job.get("nodes"), int):
            job["nodes"] = 1
