"""Computes the state of an attempt from the states of its instances. Pure.

An attempt runs when all its instances run, and is over when all of them are over. Its end reason is that of the first
failure. If one instance fails, the others have to stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.control.ports import AttemptPhase, AttemptStatus
from corral.core.model import EndReason

#: Platform failures. They are detected a while after they happen, and the rest of a gang may have died because of them.
PLATFORM_FAILURES = frozenset({EndReason.LOST, EndReason.NODE_LOST})


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceExit:
    """How one instance ended, from its exit record."""

    reason: EndReason
    ended_at: float
    exit_code: int | None = None
    message: str = ""
    #: when its main process ended; processes that it left behind may have ended later
    main_ended_at: float | None = None

    @property
    def is_good(self) -> bool:
        return self.reason is EndReason.EXIT_CODE and self.exit_code == 0

    @property
    def decided_at(self) -> float:
        """When the end reason was clear: the others of a gang may die because of it before its last process is gone."""
        return self.ended_at if self.main_ended_at is None else self.main_ended_at


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceState:
    rank: int
    node: str = ""
    #: when a supervisor claimed it
    claimed_at: float | None = None
    started_at: float | None = None
    #: the instance's image or storage is prepared first, which may take long
    prepares: bool = False
    #: a message about the progress of that
    progress: str = ""
    exit: InstanceExit | None = None


def parse_exit(body: Mapping[str, Any]) -> InstanceExit:
    """Raises ValueError or KeyError for a record that no supervisor wrote."""
    return InstanceExit(
        reason=EndReason(body["reason"]),
        ended_at=float(body["ended_at"]),
        exit_code=body.get("exit_code"),
        message=str(body.get("message", "")),
        main_ended_at=None if body.get("main_ended_at") is None else float(body["main_ended_at"]),
    )


def up_since(instances: Sequence[InstanceState]) -> float | None:
    """When the last of the instances started, or None if one has not started."""
    return _latest([instance.started_at for instance in instances])


def _latest(times: Sequence[float | None]) -> float | None:
    known = [at for at in times if at is not None]
    return max(known) if known and len(known) == len(times) else None


def must_stop(instances: Sequence[InstanceState]) -> bool:
    """Whether the instances that still run have to end because one of them failed."""
    exits = [instance.exit for instance in instances]
    return None in exits and any(end is not None and not end.is_good for end in exits)


def aggregate(attempt_id: str, instances: Sequence[InstanceState]) -> AttemptStatus | None:
    """The state of the attempt now. None while an instance has no supervisor: then it may be launched again.

    With all supervisors present it counts as running, although the last program may start a moment later. If an image
    is pulled or storage is prepared first, it counts as starting.
    """
    if instances and all(instance.exit is not None for instance in instances):
        return _ended(attempt_id, instances)
    since = up_since(instances) or _latest([instance.claimed_at for instance in instances])
    if since is None:
        return None
    waiting = [each for each in instances if each.prepares and each.started_at is None and each.exit is None]
    if not waiting:
        return AttemptStatus(attempt_id=attempt_id, phase=AttemptPhase.RUNNING, at=since)
    message = next((instance.progress for instance in waiting if instance.progress), "")
    return AttemptStatus(attempt_id=attempt_id, phase=AttemptPhase.STARTING, at=since, message=message)


def _ended(attempt_id: str, instances: Sequence[InstanceState]) -> AttemptStatus:
    ends = [(instance, instance.exit) for instance in instances if instance.exit is not None]
    failures = [(instance, end) for instance, end in ends if not end.is_good]
    ended_at = max(end.ended_at for _, end in ends)
    began_at = max((each.started_at for each in instances if each.started_at is not None), default=None)
    if not failures:
        return AttemptStatus(
            attempt_id=attempt_id,
            phase=AttemptPhase.ENDED,
            at=ended_at,
            reason=EndReason.EXIT_CODE,
            exit_code=0,
            began_at=began_at,
        )
    instance, first = min(failures, key=_precedence)
    message = first.message
    if len(instances) > 1:
        place = f" on {instance.node}" if instance.node else ""
        message = f"instance {instance.rank}{place}: {first.message}"
    return AttemptStatus(
        attempt_id=attempt_id,
        phase=AttemptPhase.ENDED,
        at=ended_at,
        reason=first.reason,
        exit_code=first.exit_code,
        message=message,
        # The rest of the gang may run there again.
        failed=(instance.node,) if first.reason is EndReason.NODE_LOST and instance.node else (),
        began_at=began_at,
    )


def _precedence(failure: tuple[InstanceState, InstanceExit]) -> tuple[bool, float, int]:
    instance, end = failure
    return end.reason not in PLATFORM_FAILURES, end.decided_at, instance.rank
