"""One attempt as the engine knows it: its order, its pods, and what happened to them."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from corral.control.ports import AttemptPhase, AttemptStatus, LaunchOrder
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit, InstanceState, aggregate, parse_exit
from corral.engines.attempts.clean_text import plain
from corral.engines.kubernetes.attempts.records import Records

log = logging.getLogger("corral.engines.kubernetes")


@dataclass(kw_only=True, slots=True)
class Attempt:
    id: str
    nodes: tuple[str, ...]
    #: the GPUs that the plan named, by rank
    gpus: tuple[tuple[str, ...], ...]
    grace_seconds: float
    limit_seconds: float | None
    created_at: float
    #: the names of its pods, by rank
    pods: tuple[str, ...]
    #: a random word that its pods have: no other user of Kubernetes can make a pod that counts as one of them
    key: str = ""
    has_login: bool = False
    has_secrets: bool = False
    #: the API server has accepted every pod, and when that was
    is_created: bool = False
    pods_made_at: float = 0.0
    #: the sign to begin was sent to a gang's pods
    was_begun: bool = False
    was_stopped: bool = False
    #: when its grace time is over, as Kubernetes counts it, and when a later stop wants the end
    kill_at: float = float("inf")
    wanted_by: float = float("inf")
    #: when the program of each instance began, and the devices that its node gave to it
    up: dict[int, float] = field(default_factory=dict)
    devices: dict[int, str] = field(default_factory=dict)
    exits: dict[int, InstanceExit] = field(default_factory=dict)
    #: the end that the engine decided: it was never created, or was taken back
    verdict: AttemptStatus | None = None
    #: the last phase that was reported to listeners
    reported: AttemptPhase | None = None
    #: why it has not begun, for its owner
    waits_for: str = "given to Kubernetes"
    #: the uids of the pods that were seen, by rank; how each ended, and when that was first seen
    seen: dict[int, str] = field(default_factory=dict)
    ends: dict[int, InstanceExit] = field(default_factory=dict)
    end_seen_at: dict[int, float] = field(default_factory=dict)
    #: by rank, when the last failure of a pod that is prepared was asked for, and the failure
    failures: dict[int, tuple[float, str]] = field(default_factory=dict)
    #: since when a pull, or the creation of a container, fails
    fails_since: float | None = None

    @property
    def is_over(self) -> bool:
        return self.verdict is not None or len(self.exits) == len(self.nodes)

    @property
    def is_gang(self) -> bool:
        return len(self.nodes) > 1

    def status(self) -> AttemptStatus | None:
        """The attempt's status; None while it has no pods: then it may be launched again."""
        if self.verdict is not None:
            return self.verdict
        if not self.up and not self.exits:
            return self._starting() if self.is_created else None
        return aggregate(self.id, self.instances()) or self._starting()

    def instances(self) -> list[InstanceState]:
        return [
            InstanceState(
                rank=rank,
                node=node,
                claimed_at=self.up.get(rank),
                started_at=self.up.get(rank),
                exit=self.exits.get(rank),
            )
            for rank, node in enumerate(self.nodes)
        ]

    def give_up(self, reason: EndReason, message: str, at: float) -> None:
        self.verdict = AttemptStatus(
            attempt_id=self.id,
            phase=AttemptPhase.ENDED,
            at=at,
            reason=reason,
            message=message,
            began_at=max(self.up.values(), default=None),
        )

    def _starting(self) -> AttemptStatus:
        return AttemptStatus(
            attempt_id=self.id, phase=AttemptPhase.STARTING, at=self.created_at, message=self.waits_for
        )


def create(records: Records, order: LaunchOrder, pods: tuple[str, ...], now: float) -> Attempt:
    """Stored before any pod is created, so that the next server knows the attempt."""
    return record(
        records,
        order.attempt_id,
        {
            "nodes": [instance.node for instance in order.instances],
            "gpus": [list(instance.gpu_ids) for instance in order.instances],
            "grace_seconds": order.grace_seconds,
            "limit_seconds": order.time_limit_seconds,
            "created_at": now,
            "pods": list(pods),
            "key": secrets.token_hex(8),
            "has_login": order.login is not None,
            "has_secrets": bool(order.secret_env),
        },
    )


def record(records: Records, attempt_id: str, document: dict[str, Any]) -> Attempt:
    """The first note of an attempt."""
    records.note(attempt_id, document, sync=True)
    return _from_document(attempt_id, document)


def load(records: Records, attempt_id: str) -> Attempt | None:
    """Loads a recorded attempt; None if a crash has cut off the order, or it is damaged. A damaged note is left out."""
    first, *later = records.notes(attempt_id) or [{}]
    try:
        attempt = _from_document(attempt_id, first)
    except (KeyError, TypeError, ValueError):
        return None
    for note in later:
        try:
            _apply(attempt, note)
        except (KeyError, TypeError, ValueError) as error:
            log.error("a note about attempt %s is damaged: %r", attempt_id, error)
    return attempt


def note(records: Records, attempt: Attempt, document: dict[str, Any], *, sync: bool = False) -> None:
    records.note(attempt.id, document, sync=sync)
    _apply(attempt, document)


def note_exit(records: Records, attempt: Attempt, rank: int, exit: InstanceExit) -> None:
    body = {
        "reason": exit.reason.value,
        "ended_at": exit.ended_at,
        "exit_code": exit.exit_code,
        "message": plain(exit.message),
        "main_ended_at": exit.main_ended_at,
    }
    note(records, attempt, {"exit": [rank, body]}, sync=True)


def conclude(records: Records, attempt: Attempt, reason: EndReason, message: str) -> None:
    """Store an end that the engine decided, for the next server too."""
    note(records, attempt, {"verdict": [reason.value, plain(message), clock()]}, sync=True)


def _from_document(attempt_id: str, document: dict[str, Any]) -> Attempt:
    return Attempt(
        id=attempt_id,
        nodes=tuple(document["nodes"]),
        gpus=tuple(map(tuple, document["gpus"])),
        grace_seconds=document["grace_seconds"],
        limit_seconds=document["limit_seconds"],
        created_at=document["created_at"],
        pods=tuple(document["pods"]),
        key=document.get("key", ""),
        has_login=document["has_login"],
        has_secrets=document.get("has_secrets", False),
    )


def _apply(attempt: Attempt, note: dict[str, Any]) -> None:
    if "created" in note:
        attempt.is_created, attempt.pods_made_at = True, note["created"]
    attempt.was_begun |= "begun" in note
    if "stopped" in note:
        attempt.was_stopped = True
        attempt.kill_at, attempt.wanted_by = note["stopped"]
    if "up" in note:
        rank, at, devices = note["up"]
        attempt.up[rank] = at
        attempt.devices[rank] = devices
    if "exit" in note:
        rank, body = note["exit"]
        attempt.exits[rank] = parse_exit(body)
    if "verdict" in note:
        reason, message, at = note["verdict"]
        attempt.give_up(EndReason(reason), message, at)


def clock() -> float:
    return time.time()
