"""The JSON column of a job: all fields that have no column of their own.

Empty fields are left out, so that rows stay small and rows from before a field was added can be read. A new plain field
is one name in `_PLAIN`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from corral.core.model import Ceiling, Elastic, EndReason, Job, JobKind, Prediction
from corral.core.snapshot.codec import from_plain, to_plain
from corral.core.storage.volumes import VolumeMount
from corral.stores.database import row_codec

#: Written as they are, unless they are empty.
_PLAIN = (
    "user_order",
    "time_limit_seconds",
    "allocated_at",
    "exit_code",
    "message",
    "retries",
    "faults",
    "not_before",
    "given_back",
    "restart_unsaved",
    "resized_at",
    "ran_seconds",
    "utilization",
    "checkpointed_at",
    "aged_from",
    "preempted_for",
    "preemptions",
    "local_bytes",
    "saved_seconds",
    "attained_seconds",
    "reached_seconds",
)

#: How the others are written, unless they are empty.
_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "allocation": row_codec.dump_allocation,
    "next_allocation": row_codec.dump_allocation,
    "stopping_for": lambda reason: reason.value,
    "end_reason": lambda reason: reason.value,
    "avoid_nodes": list,
    "avoid_gpus": list,
    "after": list,
    "elastic": lambda elastic: [elastic.min_gpus, elastic.max_gpus],
    "ceiling": lambda ceiling: [ceiling.gpus, ceiling.until, ceiling.times],
    "mounts": lambda mounts: [[mount.volume, mount.writes] for mount in mounts],
    "predicted": to_plain,
}

_REASONS = {reason.value: reason for reason in EndReason}

#: How each field is read; None: as it stands.
_READERS: Mapping[str, Callable[[Any], Any] | None] = {
    **dict.fromkeys(_PLAIN),
    **dict.fromkeys(("grace_seconds", "max_retries", "preemptible")),
    "allocation": row_codec.load_allocation,
    "next_allocation": row_codec.load_allocation,
    "stopping_for": _REASONS.__getitem__,
    "end_reason": _REASONS.__getitem__,
    "avoid_nodes": tuple,
    "avoid_gpus": tuple,
    "after": tuple,
    "elastic": lambda elastic: Elastic(min_gpus=elastic[0], max_gpus=elastic[1]),
    "ceiling": lambda ceiling: Ceiling(gpus=ceiling[0], until=ceiling[1], times=ceiling[2]),
    "mounts": lambda mounts: tuple(VolumeMount(volume=volume, writes=writes) for volume, writes in mounts),
    "predicted": lambda predicted: from_plain(Prediction, predicted),
}

_NAMES = (*_PLAIN, *_WRITERS)
_DEFAULTS = tuple({field.name: field.default for field in fields(Job)}[name] for name in _NAMES)
_values = attrgetter(*_NAMES)
# A missing field means an empty value (None, "", 0, ()). If one of these defaults in `Job` became another value, stored
# jobs would change.
assert not any(_DEFAULTS)


def encode_body(job: Job) -> str:
    document: dict[str, Any] = {
        "request": row_codec.dump_request(job.request),
        "grace_seconds": job.grace_seconds,
        "max_retries": job.max_retries,
    }
    for name, default, value in zip(_NAMES, _DEFAULTS, _values(job), strict=True):
        # `is not` first: most fields have their default, and a job is written several times in its life.
        if value is not default and value != default:
            document[name] = _WRITERS[name](value) if name in _WRITERS else value
    if job.preemptible is not job.kind.is_preemptible:
        document["preemptible"] = job.preemptible
    return row_codec.to_json(document)


def decode_body(text: str, kind: JobKind) -> dict[str, Any]:
    """Arguments for `Job`. Raises KeyError if a field that every row has is missing."""
    body = row_codec.from_json(text)
    found = {
        "request": row_codec.load_request(body["request"]),
        "grace_seconds": body["grace_seconds"],
        "max_retries": body["max_retries"],
        "preemptible": kind.is_preemptible,
    }
    for name, value in body.items():
        if name in _READERS:
            read = _READERS[name]
            found[name] = value if read is None else read(value)
    return found
