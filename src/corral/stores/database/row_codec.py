"""Values of the core as compact JSON text, and ids as integers; in both directions, without loss.

Empty values (None, "", 0, ()) are left out. A missing field always means that empty value and never the
model's default, so that a later change of a default does not change jobs that are already stored.
The text is pure ASCII: it can hold what a text column of PostgreSQL cannot (NUL, lone surrogates).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any, TypeVar

from corral.control.records import TASK_LABEL, TASK_MODE_LABEL, JobSpec, MountSpec
from corral.core.model import Allocation, Grant, Request
from corral.core.snapshot.codec import from_plain, to_plain

Name = TypeVar("Name", bound=str)

to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
from_json = json.JSONDecoder().decode

#: the largest integer that both databases hold
MAX_INTEGER = 2**63 - 1

#: Most jobs have one of a few requests. Jobs with equal requests share one object, which takes less memory and is
#: compared faster.
KEPT_REQUESTS = 4096

_JOB_ID = re.compile(r"j-([1-9][0-9]{0,17})")
_ATTEMPT_ID = re.compile(r"(j-[1-9][0-9]{0,17})\.([0-9]{1,9})")


# ------------------------------------------------------------------------------------------------ ids


def job_id(number: int) -> str:
    return f"j-{number}"


def job_number(text: str) -> int | None:
    """The integer of a job id, or None if the text is no job id."""
    match = _JOB_ID.fullmatch(text)
    return int(match[1]) if match else None


def attempt_key(text: str) -> tuple[int, int] | None:
    """Job number and attempt number of an attempt id, or None if the text is no attempt id."""
    match = _ATTEMPT_ID.fullmatch(text)
    return (int(match[1][2:]), int(match[2])) if match else None


def required_job_number(text: str) -> int:
    number = job_number(text)
    if number is None:
        raise ValueError(f"{text!r} is not the id of a job")
    return number


# ------------------------------------------------------------------------------------------------ text columns


def storable(text: str) -> str:
    """The text with characters replaced that PostgreSQL cannot store, so that such a query finds nothing instead of
    failing."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


# ------------------------------------------------------------------------------------------------ values


def dump_request(request: Request) -> dict[str, Any]:
    document: dict[str, Any] = {"nodes": request.nodes}
    if request.gpus:
        document["gpus"] = request.gpus
    if request.gpu_milli:
        document["gpu_milli"] = request.gpu_milli
    if request.cpu_milli:
        document["cpu_milli"] = request.cpu_milli
    if request.memory_bytes:
        document["memory_bytes"] = request.memory_bytes
    if request.models:
        document["models"] = request.models
    if request.labels:
        document["labels"] = request.labels
    return document


def load_request(document: Mapping[str, Any]) -> Request:
    get = document.get
    return _request(
        document["nodes"],
        get("gpus", 0),
        get("gpu_milli", 0),
        get("cpu_milli", 0),
        get("memory_bytes", 0),
        tuple(get("models", ())),
        load_pairs(get("labels", ())),
    )


@lru_cache(maxsize=KEPT_REQUESTS)
def _request(
    nodes: int,
    gpus: int,
    gpu_milli: int,
    cpu_milli: int,
    memory_bytes: int,
    models: tuple[str, ...],
    labels: tuple[tuple[str, str], ...],
) -> Request:
    return Request(
        nodes=nodes,
        gpus=gpus,
        gpu_milli=gpu_milli,
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        models=models,
        labels=labels,
    )


def dump_allocation(allocation: Allocation) -> dict[str, Any]:
    return {"model": allocation.model, "grants": [_dump_grant(grant) for grant in allocation.grants]}


def load_allocation(document: Mapping[str, Any]) -> Allocation:
    return Allocation(model=document["model"], grants=tuple(_load_grant(grant) for grant in document["grants"]))


def _dump_grant(grant: Grant) -> dict[str, Any]:
    document: dict[str, Any] = {"node": grant.node, "gpu_milli": grant.gpu_milli}
    if grant.gpus:
        document["gpus"] = grant.gpus
    if grant.cpu_milli:
        document["cpu_milli"] = grant.cpu_milli
    if grant.memory_bytes:
        document["memory_bytes"] = grant.memory_bytes
    return document


def _load_grant(document: Mapping[str, Any]) -> Grant:
    return Grant(
        node=document["node"],
        gpus=tuple(document.get("gpus", ())),
        gpu_milli=document["gpu_milli"],
        cpu_milli=document.get("cpu_milli", 0),
        memory_bytes=document.get("memory_bytes", 0),
    )


def encode_spec(spec: JobSpec) -> str:
    """Fields with their default are left out: there are many specs, and most are short."""
    kept = {name: getattr(spec, name) for name, default in _SPEC_DEFAULTS.items() if getattr(spec, name) != default}
    if spec.mounts:
        kept["mounts"] = [to_plain(mount) for mount in spec.mounts]
    return to_json({name: dict(value) if isinstance(value, Mapping) else value for name, value in kept.items()})


def decode_spec(text: str) -> JobSpec:
    document = from_json(text)
    document["command"] = tuple(document.get("command", ()))
    for name in ("items", "secrets"):
        if name in document:
            document[name] = tuple(document[name])
    document["mounts"] = tuple(from_plain(MountSpec, mount) for mount in document.get("mounts", ()))
    if TASK_LABEL in document.get("labels", ()):
        _move_task(document)
    return JobSpec(**{name: value for name, value in document.items() if name in _SPEC_DEFAULTS})


def _move_task(document: dict[str, Any]) -> None:
    """Rows of earlier versions have a task's name and mode among the labels."""
    labels = dict(document["labels"])
    document["task"] = labels.pop(TASK_LABEL)
    document["task_mode"] = labels.pop(TASK_MODE_LABEL, "")
    document["labels"] = labels


#: Defaults of the fields of a spec that are left out; a command is always stored.
_SPEC_DEFAULTS = {
    field.name: field.default_factory() if field.default_factory is not MISSING else field.default
    for field in fields(JobSpec)
}


def encode_names(names: Iterable[str]) -> str:
    """A list of texts, such as kinds of jobs or names of groups, in their order."""
    return to_json([str(name) for name in names])


def decode_names(kind: Callable[[str], Name], text: str) -> tuple[Name, ...]:
    return tuple(kind(name) for name in from_json(text))


def load_pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in pairs)
