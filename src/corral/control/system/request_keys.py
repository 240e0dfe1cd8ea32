"""Requests under a key: carried out once, in one transaction with what they create; later requests get the same result.

A client that got no answer sends the request again under the same key (HTTP header `Idempotency-Key`). The result of
the use case is stored with the key, so that the answer can be made again even if the server died before it was sent.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from corral.control.errors import Refusal
from corral.control.live.unit_of_work import Work
from corral.control.records import JobRecord, RequestKeyRecord
from corral.core.snapshot.codec import from_plain, to_plain

KEPT_SECONDS = 86_400.0
#: Values of these packages are stored as results.
_PACKAGES = ("corral.control.", "corral.core.")
_NOTHING, _JOB, _JOBS, _VALUE, _UNKNOWN = "nothing", "job", "jobs", "value", "unknown"


class KeyReused(Refusal):
    """The key was used for another request."""

    slug = "idempotency-key-reused"
    status = 422


class AnswerLost(Refusal):
    """The request was carried out before, and its answer cannot be given again."""

    slug = "answer-lost"
    status = 409


@dataclass(slots=True, kw_only=True)
class KeyedRequest:
    """One request under a key."""

    user: str
    key: str
    digest: str
    #: an answer with a secret cannot be made again: only the one that was sent counts
    has_secret: bool = False
    #: the stored answer of an earlier request
    status: int | None = None
    answer: bytes | None = None


def once(work: Work, request: KeyedRequest, use_case: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the use case, of now or of the earlier request under this key. Raises KeyReused or AnswerLost."""
    known = work.tx.request_keys.get(request.user, request.key)
    if known is not None and known.at < work.now - KEPT_SECONDS:
        work.tx.request_keys.remove(request.user, request.key)
        known = None
    if known is not None:
        return _repeated(work, request, known)
    result = use_case(work, *args, **kwargs)
    record = RequestKeyRecord(
        user=request.user, key=request.key, digest=request.digest, at=work.now, result=json.dumps(_stored(result))
    )
    work.tx.request_keys.add(record)
    return result


def keep_answer(work: Work, user: str, key: str, status: int, answer: bytes) -> None:
    work.tx.request_keys.keep_answer(user, key, status, answer)


def prune_keys(work: Work) -> int:
    """Deletes keys that are older than a day."""
    return work.tx.request_keys.prune(work.now - KEPT_SECONDS)


def _repeated(work: Work, request: KeyedRequest, known: RequestKeyRecord) -> Any:
    if known.digest != request.digest:
        raise KeyReused("another request was sent with this key: use a new key for a new request", field="key")
    request.status, request.answer = known.status, known.answer
    if known.answer is not None:
        return None
    if request.has_secret:
        raise AnswerLost("it was carried out, but its secret answer is lost: remove what was made, and make it again")
    kind, value = json.loads(known.result)
    try:
        return _loaded(work, kind, value)
    except (AttributeError, ImportError, KeyError, TypeError, ValueError) as error:
        raise AnswerLost("it was carried out, but its answer is lost: look at what was made") from error


def _stored(result: Any) -> Sequence[Any]:
    """Jobs by their ids: there may be thousands, and they are in the store."""
    match result:
        case None:
            return _NOTHING, None
        case JobRecord():
            return _JOB, result.job.id
        case [JobRecord(), *_]:
            return _JOBS, [record.job.id for record in result]
        case _ if is_dataclass(result) and type(result).__module__.startswith(_PACKAGES):
            return _VALUE, [type(result).__module__, type(result).__qualname__, _plain(result)]
        case _:
            return _UNKNOWN, None


def _plain(value: Any) -> Any:
    plain = to_plain(value)
    return json.loads(json.dumps(plain, default=dict))


def _loaded(work: Work, kind: str, value: Any) -> Any:
    if kind == _NOTHING:
        return None
    if kind == _JOB:
        return _job(work, value)
    if kind == _JOBS:
        return [_job(work, job_id) for job_id in value]
    if kind == _VALUE:
        module, name, plain = value
        if not module.startswith(_PACKAGES):
            raise ValueError(module)
        return from_plain(getattr(importlib.import_module(module), name), plain)
    raise ValueError(kind)


def _job(work: Work, job_id: str) -> JobRecord:
    # A job of the same turn is in the snapshot, and not in the table yet.
    if (job := work.state.snapshot.jobs.get(job_id)) is not None:
        return JobRecord(job=job, spec=work.jobs.spec(job_id))
    record = work.tx.jobs.get(job_id)
    if record is None:
        raise KeyError(job_id)
    return record
