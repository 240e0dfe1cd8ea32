"""The JSON column of a job: all fields that have no column of their own.

Fields that have their default are left out if that default is empty (None, "", 0, ()), so that rows stay small. Rows
from before a field was added can be read: a field that is missing has its default. A new field of `Job` that is a text,
a number, a truth value or None is stored without a line here; every other type needs a writer and a reader.
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

#: Fields with a column of their own, in the order of the columns; `body` follows them.
COLUMN_FIELDS = (
    "id",
    "name",
    "user",
    "kind",
    "state",
    "queue",
    "priority",
    "created_at",
    "queued_at",
    "pinned_at",
    "started_at",
    "ended_at",
    "attempt",
    "version",
)

#: How fields that are not plain values are written.
_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "allocation": row_codec.dump_allocation,
    "next_allocation": row_codec.dump_allocation,
    "stopping_for": lambda reason: reason.value,
    "end_reason": lambda reason: reason.value,
    "avoid_nodes": list,
    "avoid_gpus": list,
    "only_gpus": list,
    "after": list,
    "retry_on": list,
    "elastic": lambda elastic: [elastic.min_gpus, elastic.max_gpus],
    "ceiling": lambda ceiling: [ceiling.gpus, ceiling.until, ceiling.times],
    "mounts": lambda mounts: [[mount.volume, mount.writes] for mount in mounts],
    "predicted": to_plain,
}

#: `request` is always written; `preemptible` only if it is not the default of the job's kind.
_SPECIAL = frozenset({"request", "preemptible"})
_PLAIN = tuple(field.name for field in fields(Job) if field.name not in {*COLUMN_FIELDS, *_WRITERS, *_SPECIAL})

_REASONS = {reason.value: reason for reason in EndReason}

#: How each field is read; None: as it stands.
_READERS: Mapping[str, Callable[[Any], Any] | None] = {
    **dict.fromkeys(_PLAIN),
    "preemptible": None,
    "allocation": row_codec.load_allocation,
    "next_allocation": row_codec.load_allocation,
    "stopping_for": _REASONS.__getitem__,
    "end_reason": _REASONS.__getitem__,
    "avoid_nodes": tuple,
    "avoid_gpus": tuple,
    "only_gpus": tuple,
    "after": tuple,
    "retry_on": tuple,
    "elastic": lambda elastic: Elastic(min_gpus=elastic[0], max_gpus=elastic[1]),
    "ceiling": lambda ceiling: Ceiling(gpus=ceiling[0], until=ceiling[1], times=ceiling[2]),
    "mounts": lambda mounts: tuple(VolumeMount(volume=volume, writes=writes) for volume, writes in mounts),
    "predicted": lambda predicted: from_plain(Prediction, predicted),
}

_NAMES = (*_PLAIN, *_WRITERS)
#: Equal to no value: a field whose default is not empty is always written, so that stored jobs stay as they are if the
#: default changes.
_ALWAYS_WRITTEN = object()
_JOB_DEFAULTS = {field.name: field.default for field in fields(Job)}
_DEFAULTS = tuple(_ALWAYS_WRITTEN if _JOB_DEFAULTS[name] else _JOB_DEFAULTS[name] for name in _NAMES)
_values = attrgetter(*_NAMES)


def encode_body(job: Job) -> str:
    document: dict[str, Any] = {"request": row_codec.dump_request(job.request)}
    for name, default, value in zip(_NAMES, _DEFAULTS, _values(job), strict=True):
        # `is not` first: most fields have their default, and a job is written several times in its life.
        if value is not default and value != default:
            document[name] = _WRITERS[name](value) if name in _WRITERS else value
    if job.preemptible is not job.kind.is_preemptible:
        document["preemptible"] = job.preemptible
    return row_codec.to_json(document)


def decode_body(text: str, kind: JobKind) -> dict[str, Any]:
    """Arguments for `Job`. Raises KeyError without the request, which every row has."""
    body = row_codec.from_json(text)
    found = {
        "request": row_codec.load_request(body["request"]),
        "preemptible": kind.is_preemptible,
    }
    for name, value in body.items():
        if name in _READERS:
            read = _READERS[name]
            found[name] = value if read is None else read(value)
    return found
