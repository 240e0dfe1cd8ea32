"""The encoding of the scheduling journal: changes of the snapshot, a digest of its content, and plans.

An entry holds the changes since the entry before, so that a cycle costs what changed. Replaying the entries from a base
gives the same snapshots and so the same plans; the digest proves that no change is missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from corral.core.model import Allocation, Job
from corral.core.people.quota import Quota
from corral.core.scheduling.limits.claims import Claim
from corral.core.scheduling.plan.plan import Plan, PlannedStart, Preemption, Resize, Start
from corral.core.snapshot.changes import (
    Change,
    DropBudget,
    DropJob,
    DropMembership,
    DropNode,
    DropQueue,
    DropReservation,
    DropVolume,
    PutBudget,
    PutJob,
    PutLastNode,
    PutMembership,
    PutMix,
    PutNode,
    PutQueue,
    PutQuota,
    PutReservation,
    PutRules,
    PutScore,
    PutVolume,
)
from corral.core.snapshot.codec import dumps, from_plain, to_plain
from corral.core.snapshot.waiting_lines import LineKey

_KINDS: dict[str, type[Change]] = {
    kind.__name__: kind
    for kind in (
        PutNode, DropNode, PutJob, DropJob, PutQueue, DropQueue, PutQuota, PutMembership, DropMembership, PutScore,
        PutRules, PutLastNode, PutMix, PutReservation, DropReservation, PutVolume, DropVolume,
        PutBudget, DropBudget,
    )
}  # fmt: skip


class Digest:
    """A digest of a snapshot's content, updated by each change: equal content has equal digests."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, ...], int] = {}
        self._sum = 0

    def add(self, changes: Iterable[Change]) -> list[str | None]:
        """Returns the content of each change as text, for `encode_changes`; None for a dropped object."""
        texts = []
        for change in changes:
            key, text = _identity(change)
            texts.append(text)
            self._sum ^= self._parts.pop(key, 0)
            if text is not None:
                part = int.from_bytes(hashlib.blake2b("\0".join((*key, text)).encode(), digest_size=16).digest(), "big")
                self._parts[key] = part
                self._sum ^= part
        return texts

    def hex(self) -> str:
        return f"{self._sum:032x}"


def digest_of(changes: Iterable[Change]) -> str:
    """The digest of a snapshot with these contents."""
    digest = Digest()
    digest.add(changes)
    return digest.hex()


def plain_changes(changes: Iterable[Change]) -> list[list[Any]]:
    return [[type(change).__name__, to_plain(change)] for change in changes]


def changes_of_plain(plain: Iterable[Any]) -> list[Change]:
    """Raises KeyError, TypeError or ValueError for data that `plain_changes` did not write."""
    return [from_plain(_KINDS[name], fields) for name, fields in plain]


def encode_changes(changes: Iterable[Change], texts: Iterable[str | None] | None = None) -> bytes:
    """`texts` are what a digest returned for these changes; with them no job is encoded a second time."""
    pairs = ((change, None) for change in changes) if texts is None else zip(changes, texts, strict=True)
    return zlib.compress(f"[{','.join([_entry_text(change, text) for change, text in pairs])}]".encode(), 1)


def _entry_text(change: Change, text: str | None) -> str:
    fields = dumps(change) if text is None or not isinstance(change, PutJob) else f'{{"job":{text}}}'
    return f'["{type(change).__name__}",{fields}]'


def decode_changes(data: bytes) -> list[Change]:
    """Raises ValueError for data that `encode_changes` did not write."""
    with _readable():
        return changes_of_plain(json.loads(zlib.decompress(data)))


def condensed(entries: Iterable[bytes]) -> list[Change]:
    """The changes that lead from an empty snapshot to the result of all entries: only the last change of each object,
    and none of dropped objects. Only these are decoded, so that a long history is read nearly as fast as it is parsed.
    Raises ValueError as `decode_changes` does.
    """
    things: dict[tuple[str, ...], list[Any]] = {}
    with _readable():
        for data in entries:
            for item in json.loads(zlib.decompress(data)):
                noun, key = _PLAIN_KEYS[item[0]]
                identity = (noun, *key(item[1]))
                if item[0].startswith("Drop"):
                    things.pop(identity, None)
                else:
                    things[identity] = item
        return changes_of_plain(things.values())


#: The kind and the key of the thing that a plain change is about; required fields are always written.
_PLAIN_KEYS: dict[str, tuple[str, Callable[[Any], tuple[str, ...]]]] = {
    "PutNode": ("node", lambda plain: (plain["node"]["id"],)),
    "DropNode": ("node", lambda plain: (plain["id"],)),
    "PutJob": ("job", lambda plain: (plain["job"]["id"],)),
    "DropJob": ("job", lambda plain: (plain["id"],)),
    "PutQueue": ("queue", lambda plain: (plain["queue"]["name"],)),
    "DropQueue": ("queue", lambda plain: (plain["name"],)),
    "PutQuota": ("quota", lambda plain: (plain["user"], plain["kind"])),
    "PutBudget": ("budget", lambda plain: _budget_key(plain["budget"])),
    "DropBudget": ("budget", lambda plain: _budget_key(plain)),
    "PutMembership": ("membership", lambda plain: (plain["user"],)),
    "DropMembership": ("membership", lambda plain: (plain["user"],)),
    "PutScore": ("score", lambda plain: (plain["user"], plain["model"])),
    "PutRules": ("rules", lambda plain: ()),
    "PutLastNode": ("last-node", lambda plain: ()),
    "PutMix": ("mix", lambda plain: (plain["pool"],)),
    "PutReservation": ("reservation", lambda plain: (plain["reservation"]["name"],)),
    "DropReservation": ("reservation", lambda plain: (plain["name"],)),
    "PutVolume": ("volume", lambda plain: (plain["volume"]["id"],)),
    "DropVolume": ("volume", lambda plain: (plain["id"],)),
}


def _budget_key(plain: Any) -> tuple[str, ...]:
    return (plain["account"]["kind"], plain["account"]["name"], plain["unit"])


def times_of(job: Job) -> tuple[float | None, ...]:
    return (job.created_at, job.queued_at, job.allocated_at, job.started_at, job.resized_at)


def seen_at(change: Change) -> float | None:
    """A time before which the change cannot have happened, taken from its content; None if the content has no time."""
    match change:
        case PutJob(job=job):
            return max(time for time in times_of(job) if time is not None)
        case PutScore(score=score):
            return score.at
        case _:
            return None


def encode_plan(plan: Plan) -> bytes:
    plain: dict[str, Any] = {
        "at": plan.at,
        "wake_at": plan.wake_at,
        "starts": [[start.job_id, to_plain(start.allocation)] for start in plan.starts],
        "planned": [
            {
                "job_id": planned.job_id,
                "line": list(planned.line),
                "at": planned.at if planned.is_known else None,
                "nodes": list(planned.nodes),
                "held": to_plain(planned.held),
                "is_firm": planned.is_firm,
                "idle": planned.idle_gpu_seconds,
                "slack": planned.slack_seconds,
            }
            for planned in plan.planned
        ],
        "claims": [
            [claim.job_id, claim.rule, claim.queue, claim.at if math.isfinite(claim.at) else None, *_mount_of(claim)]
            for claim in plan.claims
        ],
        "resizes": [to_plain(resize) for resize in plan.resizes],
        "preemptions": [to_plain(preemption) for preemption in plan.preemptions],
    }
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), 1)


def decode_plan(data: bytes) -> Plan:
    """Raises ValueError for data that `encode_plan` did not write."""
    with _readable():
        return _plan_of(json.loads(zlib.decompress(data)))


def _plan_of(plain: dict[str, Any]) -> Plan:
    return Plan(
        at=plain["at"],
        wake_at=plain["wake_at"],
        starts=tuple(
            Start(job_id=job_id, allocation=from_plain(Allocation, allocation))
            for job_id, allocation in plain["starts"]
        ),
        planned=tuple(
            PlannedStart(
                job_id=item["job_id"],
                line=LineKey(*item["line"]),
                at=float("inf") if item["at"] is None else item["at"],
                nodes=tuple(item["nodes"]),
                held=from_plain(Allocation, item["held"]),
                is_firm=item.get("is_firm", True),
                idle_gpu_seconds=item.get("idle", 0.0),
                slack_seconds=item.get("slack", 0.0),
            )
            for item in plain["planned"]
        ),
        claims=tuple(
            Claim(job_id=job_id, rule=rule, queue=queue, at=math.inf if at is None else at, **_claimed(mount))
            for job_id, rule, queue, at, *mount in plain.get("claims", ())
        ),
        resizes=tuple(from_plain(Resize, resize) for resize in plain.get("resizes", ())),
        preemptions=tuple(from_plain(Preemption, item) for item in plain.get("preemptions", ())),
    )


def _mount_of(claim: Claim) -> list[Any]:
    return [claim.volume, claim.writes] if claim.volume else []


def _claimed(mount: list[Any]) -> dict[str, Any]:
    return dict(zip(("volume", "writes"), mount, strict=True)) if mount else {}


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (zlib.error, AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not readable: {type(error).__name__}: {error}") from error


def _identity(change: Change) -> tuple[tuple[str, ...], str | None]:
    """The key of the changed object, and its content; None for a dropped object."""
    match change:
        case PutNode(node=node):
            return ("node", node.id), dumps(node)
        case DropNode(id=node_id):
            return ("node", node_id), None
        case PutJob(job=job):
            return ("job", job.id), dumps(job)
        case DropJob(id=job_id):
            return ("job", job_id), None
        case PutQueue(queue=queue):
            return ("queue", queue.name), dumps(queue)
        case DropQueue(name=name):
            return ("queue", name), None
        case PutQuota(user=user, kind=kind, quota=quota):
            return ("quota", user, kind), None if quota == Quota() else dumps(quota)
        case PutBudget(budget=budget):
            return ("budget", budget.account.kind, budget.account.name, budget.unit), dumps(budget)
        case DropBudget(account=account, unit=unit):
            return ("budget", account.kind, account.name, unit), None
        case PutMembership(user=user, membership=membership):
            return ("membership", user), dumps(membership)
        case DropMembership(user=user):
            return ("membership", user), None
        case PutScore(user=user, model=model, score=score):
            return ("score", user, model), dumps(score)
        case PutRules():
            return ("rules",), dumps(change)
        case PutLastNode(id=node_id, gpu=gpu_id):
            return ("last-node",), f"{node_id} {gpu_id}" if gpu_id else node_id
        case PutMix(pool=pool, mix=mix):
            return ("mix", pool), dumps(mix) if mix.portions else None
        case PutReservation(reservation=reservation):
            return ("reservation", reservation.name), dumps(reservation)
        case PutVolume(volume=volume):
            return ("volume", volume.id), dumps(volume)
        case DropVolume(id=volume_id):
            return ("volume", volume_id), None
        case DropReservation(name=name):
            return ("reservation", name), None
