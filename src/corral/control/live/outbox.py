"""The outbox: carries out effects on one engine (launch, stop, forget, withhold a node) after their commit.

The controller decides in a database transaction and must not wait for an engine there. So it puts effects into an
outbox, which carries them out on its own thread and tries again until the engine has taken them.

- Effects on one attempt are carried out in order.
- An effect that the engine cannot take now is put back and tried again after a pause that grows. Other effects are
  carried out meanwhile.
- Effects are not stored. After a crash, reconciling compares the store with the engine and finds the missing ones.
"""

from __future__ import annotations

import enum
import logging
import queue
import threading
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from corral.control.fleet.node_effects import NodeEffect, ReleaseEffect, WithholdEffect
from corral.control.launch.resume_points import ResumePoints
from corral.control.live.outbox_retries import PutBack
from corral.control.live.worker import Worker
from corral.control.ports import (
    AttemptTaken,
    Checkpoints,
    Engine,
    EngineUnavailable,
    LaunchesAtOnce,
    LaunchOrder,
    LaunchRefused,
    StoreUnavailable,
    Workspace,
)
from corral.core.model import job_of_attempt

log = logging.getLogger("corral.control")

#: One round of the pauses after which the engine is asked again.
RETRY_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchEffect:
    order: LaunchOrder
    #: the checkpoint to resume from was looked up; the order names it if there is one
    is_looked_up: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RefuseEffect:
    """The attempt cannot be prepared, so it is never launched. Goes through the outbox like a launch: an attempt that
    was launched by an earlier effect is not refused."""

    attempt_id: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StopEffect:
    attempt_id: str
    grace_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetEffect:
    attempt_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteEffect:
    """Jobs are deleted: remove their logs and directories."""

    #: the attempts of each job
    attempts: Mapping[str, tuple[str, ...]]


Effect = LaunchEffect | RefuseEffect | StopEffect | ForgetEffect | DeleteEffect | NodeEffect


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """Effects that an engine could not take yet."""

    waiting: int
    #: why the engine could not take the last of them
    trouble: str = ""


class _Sign(enum.Enum):
    """A signal to the thread of an outbox, in the same queue as its effects."""

    CLOSE = enum.auto()
    ROUND = enum.auto()
    HURRY = enum.auto()


class Outbox:
    """The effects on one engine, on a thread of their own, so that a slow engine does not slow down the others."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        workspace: Workspace,
        refused: Callable[[str, str], None],
        checkpoints: Checkpoints | None = None,
        prepare: Callable[[LaunchOrder], LaunchOrder] = lambda order: order,
        not_taken: Callable[[str, str], None] = lambda attempt_id, reason: None,
        failed: Callable[[str, str], None] | None = None,
    ) -> None:
        """`refused` is called with the attempt and the reason when an attempt will never be launched. `prepare` runs
        the launch steps before every launch, on the thread of this outbox. `not_taken` is called with the attempt and
        the reason each time that a launch must wait, and with "" once it waits no more. `failed` is called in place of
        `refused` if the engine itself failed: that is a platform failure.

        With `checkpoints`, the order of an attempt that follows earlier ones says which checkpoint to resume from.
        """
        self._engine = engine
        self._workspace = workspace
        self._refused = refused
        self._prepare = prepare
        self._not_taken = not_taken
        self._failed = failed or refused
        self._effects: queue.SimpleQueue[Effect | _Sign] = queue.SimpleQueue()
        self._resume_points = ResumePoints(checkpoints, self._looked_up) if checkpoints is not None else None
        #: attempts that the engine has taken, and attempts that are refused, with the reason, until their end is
        #: recorded. No attempt is both: a refused attempt gives back its GPUs, and must not be launched after that
        self._launched: set[str] = set()
        self._refusals: dict[str, Callable[[], None]] = {}
        #: attempts whose launch waits until it is known what they resume from
        self._awaited: set[str] = set()
        #: what the engine could not take, and of that what is to be tried again now
        self._waiting: PutBack[Effect] = PutBack()
        self._again: deque[Hashable] = deque()
        #: why the engine could not take the last effect that was put back
        self._trouble = ""
        self._round: threading.Timer | None = None
        self._worker = Worker(f"outbox-{name}", self._step, every_seconds=0.0, interrupt=self._interrupt)

    def start(self) -> None:
        self._worker.start()

    def put(self, effect: Effect) -> None:
        self._effects.put(effect)

    def hurry(self) -> None:
        """The engine answers again: try the waiting effects now, before the end of their pauses."""
        self._effects.put(_Sign.HURRY)

    def backlog(self) -> Backlog:
        """The effects that wait for the engine. Safe to call from any thread."""
        count = len(self._waiting)
        return Backlog(waiting=count, trouble=self._trouble if count else "")

    def close(self) -> None:
        """Return once the present effect is carried out. Effects that still wait are found again by reconciling."""
        self._worker.stop()
        if self._round is not None:
            self._round.cancel()

    def _interrupt(self) -> None:
        if self._resume_points is not None:
            self._resume_points.close()
        self._effects.put(_Sign.CLOSE)

    def _step(self) -> None:
        """One new effect, then one effect that is tried again."""
        if not self._again or not self._effects.empty():
            self._take(self._effects.get())
        if self._again and not self._worker.is_stopping:
            effect = self._waiting.get(self._again.popleft())
            if effect is not None:
                self._try(effect)
        self._count_rounds()

    def _take(self, taken: Effect | _Sign) -> None:
        match taken:
            case _Sign.CLOSE:
                return
            case _Sign.ROUND:
                self._round = None
                self._again.extend(self._waiting.next_round())
            case _Sign.HURRY:
                self._again = deque(self._waiting.hurry())
            case effect:
                if (due := self._due(effect)) is not None:
                    self._try(due)

    def _count_rounds(self) -> None:
        """Start the timer of the next round of retries. Not while effects are tried: a slow engine gets fewer
        retries."""
        if self._waiting and not self._again and self._round is None:
            self._round = threading.Timer(RETRY_SECONDS, self._effects.put, (_Sign.ROUND,))
            self._round.daemon = True
            self._round.start()

    def _looked_up(self, order: LaunchOrder) -> None:
        self._effects.put(LaunchEffect(order=order, is_looked_up=True))

    def _due(self, effect: Effect) -> Effect | None:
        """The effect to carry out now, or None. A launch that waits for its checkpoint to be read delays no other
        effect."""
        if self._waiting and self._is_waited_for(effect):
            return None
        match effect:
            case LaunchEffect(order=order) if order.attempt_id in self._refusals:
                # Reported again: the store may have been unavailable at the first report.
                self._refusals[order.attempt_id]()
                return None
            case RefuseEffect(attempt_id=attempt_id) if attempt_id in self._launched:
                return None
            case ForgetEffect(attempt_ids=ids):
                self._launched.difference_update(ids)
                for attempt_id in ids:
                    self._refusals.pop(attempt_id, None)
            case LaunchEffect(order=order, is_looked_up=False) if order.attempt_id in self._awaited:
                return None  # reconciling has found it missing, and its checkpoint is being looked up
            case LaunchEffect(order=order, is_looked_up=False) if self._resume_points is not None:
                if not self._resume_points.is_needed(order):
                    return effect
                self._awaited.add(order.attempt_id)
                self._resume_points.look_up(order)
                return None
            case LaunchEffect(order=order, is_looked_up=True):
                if order.attempt_id not in self._awaited:
                    return None  # the attempt was stopped meanwhile
                self._awaited.remove(order.attempt_id)
                self._end_lookup(order.attempt_id)
            case StopEffect(attempt_id=attempt_id) if attempt_id in self._awaited:
                self._awaited.remove(attempt_id)
                self._end_lookup(attempt_id)
                self._refuse(attempt_id, "it was stopped before it was launched")
                return None
            case _:
                pass
        return effect

    def _end_lookup(self, attempt_id: str) -> None:
        if self._resume_points is not None:
            self._resume_points.end(attempt_id)

    def _is_waited_for(self, effect: Effect) -> bool:
        """Whether the same effect waits for a retry already. If not, the new effect replaces a waiting one on the same
        subject: a stop replaces a launch, the recorded end of an attempt replaces its effects, and the newest effect on
        a node replaces an earlier one.

        A stop is sent also for a launch that the engine did not take: perhaps only the engine's answer was lost."""
        waits = self._waiting.get(_subject(effect))
        match effect:
            case LaunchEffect() | RefuseEffect():
                return waits is not None
            case StopEffect(attempt_id=attempt_id):
                if isinstance(waits, StopEffect):
                    return True
                self._waiting.drop(attempt_id)
            case ForgetEffect(attempt_ids=ids):
                for attempt_id in ids:
                    self._waiting.drop(attempt_id)
                return waits is not None
            case DeleteEffect(attempts=attempts):
                for attempt_id in [ended for each in attempts.values() for ended in each]:
                    self._waiting.drop(attempt_id)
                return waits is not None
            case WithholdEffect(node=node) | ReleaseEffect(node=node):
                if waits == effect:
                    return True
                self._waiting.drop(("node", node))
            case _:
                assert_never(effect)
        return False

    def _try(self, effect: Effect) -> None:
        trouble = self._carry_out(effect)
        if trouble:
            self._trouble = trouble
            self._waiting.put(_subject(effect), effect)
        elif not self._waiting or self._waiting.drop(_subject(effect)) is None:
            return
        if isinstance(effect, LaunchEffect):
            self._not_taken(effect.order.attempt_id, trouble)

    def _carry_out(self, effect: Effect) -> str:
        """Why the effect must be tried again later; "" if no retry is needed."""
        try:
            match effect:
                case LaunchEffect(order=order):
                    self._engine.launch(self._prepare(order))
                    self._launched.add(order.attempt_id)
                case RefuseEffect(attempt_id=attempt_id, message=message):
                    self._refuse(attempt_id, message)
                case StopEffect(attempt_id=attempt_id, grace_seconds=grace_seconds):
                    self._engine.stop(attempt_id, grace_seconds)
                case ForgetEffect(attempt_ids=attempt_ids):
                    self._engine.forget(attempt_ids)
                case DeleteEffect(attempts=attempts):
                    try:
                        self._engine.forget(
                            [attempt_id for each in attempts.values() for attempt_id in each], delete_logs=True
                        )
                    finally:
                        self._workspace.remove(list(attempts))
                case WithholdEffect(node=node, reason=reason):
                    self._engine.withhold(node, reason)
                case ReleaseEffect(node=node, force=force):
                    self._engine.release(node, force=force)
        except AttemptTaken as taken:
            assert isinstance(effect, LaunchEffect)
            self._refuse(effect.order.attempt_id, str(taken), self._failed)
        except LaunchRefused as refusal:
            assert isinstance(effect, LaunchEffect)
            self._refuse(effect.order.attempt_id, str(refusal))
        except (EngineUnavailable, StoreUnavailable) as error:
            # The launch steps read the store, for keys, logins and dataset versions.
            log.warning("engine is unavailable, trying again: %s", error)
            return str(error) or "it does not answer"
        except Exception as error:
            # A bug in an engine must not end the thread that serves all jobs.
            log.exception("engine failed")
            if isinstance(effect, LaunchEffect):
                return self._give_up(effect.order.attempt_id, f"the engine failed: {type(error).__name__}: {error}")
            if not isinstance(effect, RefuseEffect):
                return f"{type(error).__name__}: {error}"  # no other part of the server sends most effects again
        return ""

    def _refuse(self, attempt_id: str, message: str, say: Callable[[str, str], None] | None = None) -> None:
        self._refusals.setdefault(attempt_id, partial(say or self._refused, attempt_id, message))
        self._refusals[attempt_id]()

    def _give_up(self, attempt_id: str, reason: str) -> str:
        """The engine failed at an unknown point: the attempt gives back its GPUs only after the engine accepted a
        stop."""
        try:
            self._engine.stop(attempt_id, 0.0)
        except Exception as error:  # noqa: BLE001 - whatever it is, the launch is tried again
            return f"{reason}; and it cannot be stopped: {error}"
        self._refuse(attempt_id, reason, self._failed)
        return ""


def _subject(effect: Effect) -> Hashable:
    """The subject of an effect: at most one effect on each subject waits."""
    match effect:
        case LaunchEffect(order=order):
            return order.attempt_id
        case StopEffect(attempt_id=attempt_id) | RefuseEffect(attempt_id=attempt_id):
            return attempt_id
        case ForgetEffect(attempt_ids=attempt_ids):
            return ("forget", attempt_ids)
        case DeleteEffect(attempts=attempts):
            return ("delete", tuple(attempts))
        case WithholdEffect(node=node) | ReleaseEffect(node=node):
            return ("node", node)
        case _:
            assert_never(effect)


class Lanes:
    """The effects on one engine in several parallel outboxes. All effects on one job are in the same outbox, in
    order."""

    def __init__(self, outboxes: Sequence[Outbox]) -> None:
        self._outboxes = tuple(outboxes)

    def start(self) -> None:
        for outbox in self._outboxes:
            outbox.start()

    def put(self, effect: Effect) -> None:
        for lane, part in self._parts(effect):
            self._outboxes[lane].put(part)

    def hurry(self) -> None:
        for outbox in self._outboxes:
            outbox.hurry()

    def backlog(self) -> Backlog:
        each = [outbox.backlog() for outbox in self._outboxes]
        return Backlog(
            waiting=sum(status.waiting for status in each),
            trouble=next((status.trouble for status in each if status.trouble), ""),
        )

    def close(self) -> None:
        for outbox in self._outboxes:
            outbox.close()

    def _parts(self, effect: Effect) -> Iterator[tuple[int, Effect]]:
        match effect:
            case LaunchEffect(order=order):
                yield self._lane(job_of_attempt(order.attempt_id)[0]), effect
            case StopEffect(attempt_id=attempt_id) | RefuseEffect(attempt_id=attempt_id):
                yield self._lane(job_of_attempt(attempt_id)[0]), effect
            case ForgetEffect(attempt_ids=ids):
                for lane in range(len(self._outboxes)):
                    if mine := tuple(
                        attempt_id for attempt_id in ids if self._lane(job_of_attempt(attempt_id)[0]) == lane
                    ):
                        yield lane, ForgetEffect(attempt_ids=mine)
            case DeleteEffect(attempts=attempts):
                for lane in range(len(self._outboxes)):
                    if jobs := {job: ids for job, ids in attempts.items() if self._lane(job) == lane}:
                        yield lane, DeleteEffect(attempts=jobs)
            case WithholdEffect(node=node) | ReleaseEffect(node=node):
                yield self._lane(node), effect
            case _:
                assert_never(effect)

    def _lane(self, job_id: str) -> int:
        return zlib.crc32(job_id.encode()) % len(self._outboxes)


def lanes_of(
    name: str,
    engine: Engine,
    workspace: Workspace,
    refused: Callable[[str, str], None],
    checkpoints: Checkpoints | None,
    prepare: Callable[[LaunchOrder], LaunchOrder],
    not_taken: Callable[[str, str], None],
    failed: Callable[[str, str], None],
) -> Lanes:
    """Creates one outbox per launch that the engine takes at the same time; the arguments are those of `Outbox`."""
    count = engine.launches_at_once if isinstance(engine, LaunchesAtOnce) else 1
    names = [name, *(f"{name}-{number}" for number in range(2, count + 1))]
    return Lanes([Outbox(lane, engine, workspace, refused, checkpoints, prepare, not_taken, failed) for lane in names])
