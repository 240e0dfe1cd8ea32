"""One attempt as the engine knows it: its order, its Slurm job, and the reports of its nodes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from corral.control.ports import AttemptPhase, AttemptStatus, LaunchOrder
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit, InstanceState, aggregate
from corral.engines.attempts.clean_text import plain
from corral.engines.attempts.json_files import parse_json
from corral.engines.slurm.attempts import run_directory
from corral.engines.slurm.attempts.ends import ended_by_slurm, exit_from_slurm, parse_exit, reported_time
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob

log = logging.getLogger("corral.engines.slurm")

#: Stands for a record that the disk does not give back.
_UNREADABLE = "{}"
#: How long a report of a node may take until the server sees it: network file systems cache for a while.
SETTLE_SECONDS = 5.0


@dataclass(kw_only=True, slots=True)
class Attempt:
    id: str
    nodes: tuple[str, ...]
    #: the GPUs that the plan named, by node
    gpus: dict[str, tuple[str, ...]]
    grace_seconds: float
    limit_seconds: float | None
    created_at: float
    #: the account of its Slurm job
    owner: JobOwner = field(default_factory=JobOwner)
    #: part of the job's name from its submission on: no user can have given a job that name before
    secret: str = ""
    #: its order was damaged: the secret is lost, and everything that its files and Slurm do not show
    is_damaged: bool = False
    job_id: int | None = None
    #: Slurm confirms that the job with this id has the account: sbatch runs as that account, which may change its
    #: output, and a Slurm that was installed again counts from the beginning
    is_confirmed: bool = False
    was_stopped: bool = False
    up: dict[int, float] = field(default_factory=dict)
    exits: dict[int, InstanceExit] = field(default_factory=dict)
    #: its record was made from its Slurm job, after a restore: when that job began, nodes had reported elsewhere
    was_adopted: bool = False
    #: exits that were requested, but not by corral: Slurm shows the reason in the end
    outside: dict[int, InstanceExit] = field(default_factory=dict)
    #: the Slurm job that claims to run this attempt
    claimed_by: int | None = None
    #: how many bytes of each instance's reports were read
    read_bytes: dict[int, int] = field(default_factory=dict)
    #: instances whose reports cannot be read, until they can
    unreadable: set[int] = field(default_factory=set)
    #: when the job was submitted, as far as this server knows
    given_at: float = 0.0
    #: the job as Slurm last reported it, and since when Slurm says that it is over
    seen: SlurmJob | None = None
    over_since: float | None = None
    #: the end that the engine decided: it was never submitted, or was taken back
    verdict: AttemptStatus | None = None
    #: the last phase that was reported to listeners
    reported: AttemptPhase | None = None

    @property
    def is_over(self) -> bool:
        return self.verdict is not None or len(self.exits) == len(self.nodes)

    @property
    def was_submitted(self) -> bool:
        return self.job_id is not None

    @property
    def waits_in_slurm(self) -> bool:
        return not self.is_over and not self.up and self.seen is not None and self.seen.state == "PENDING"

    def job_name(self, mark: str) -> str:
        return f"{mark}{self.id}-{self.secret}" if self.secret else f"{mark}{self.id}"

    def is_named(self, name: str, mark: str) -> bool:
        """Whether that is the name of its Slurm job."""
        return name == self.job_name(mark) or (self.is_damaged and name.startswith(f"{mark}{self.id}-"))

    def status(self) -> AttemptStatus | None:
        """The attempt's status; None while it has no job: then it may be launched again."""
        if self.verdict is not None:
            return self.verdict
        instances = self.instances()
        if not self.up and not self.exits:
            if not self.was_submitted:
                return None
            return AttemptStatus(
                attempt_id=self.id, phase=AttemptPhase.STARTING, at=self.created_at, message=self._waits_for()
            )
        status = aggregate(self.id, instances)
        if status is not None:
            return status
        return AttemptStatus(attempt_id=self.id, phase=AttemptPhase.STARTING, at=self.created_at)

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

    def read_reports(self, layout: Layout) -> None:
        """Read the reports of the nodes. Reports that cannot be read, and lines that corral's script did not write, are
        ignored: then Slurm's state counts."""
        for rank in range(len(self.nodes)):
            if rank in self.exits:
                continue
            done = self.read_bytes.get(rank, 0)
            try:
                lines, self.read_bytes[rank] = run_directory.read_on(f"{layout.place(self.id, rank)}/told", done)
            except OSError as error:
                # Of this attempt only: the others must still be seen.
                if rank not in self.unreadable:
                    log.warning("the reports of instance %d of %s cannot be read: %s", rank, self.id, error)
                self.unreadable.add(rank)
                continue
            self.unreadable.discard(rank)
            for number, line in enumerate(lines):
                with contextlib.suppress(ValueError):
                    self._take_line(rank, *line.split(" ", 1), is_first=not done and not number)

    def _take_line(self, rank: int, word: str, rest: str = "", *, is_first: bool) -> None:
        """Raises ValueError for a line that corral's script did not write."""
        now = clock()
        if word == "claimed" and is_first:
            self.claimed_by = int(rest)
        elif word == "up":
            self.up.setdefault(rank, reported_time(rest, self.created_at, now))
        elif word == "end":
            reported = parse_exit(rest, limit_seconds=self.limit_seconds, since=self.created_at, now=now)
            by_others = reported.is_from_outside and not self.was_stopped
            (self.outside if by_others else self.exits)[rank] = reported.exit

    def follow(self, job: SlurmJob | None, layout: Layout, now: float) -> None:
        """Slurm's state counts only if the nodes have reported nothing, and a while after Slurm showed the end."""
        self.seen = job
        self.is_confirmed |= job is not None
        if job is None or not job.is_over or self.is_over:
            return
        if self.over_since is None:
            self.over_since = now
        self.read_reports(layout)
        have_reported = len(self.outside) + len(self.exits) == len(self.nodes)
        if now < self.over_since + SETTLE_SECONDS and not have_reported and not _is_final_state(job):
            return
        if not ended_by_slurm(job):
            self.exits |= self.outside
        reported = [exit_code.ended_at for exit_code in self.exits.values()]
        for rank in range(len(self.nodes)):
            has_begun = self.was_adopted or layout.was_claimed(self.id, rank)
            end = exit_from_slurm(job, has_begun=has_begun, was_stopped=self.was_stopped, now=now)
            # Slurm reports whole seconds, and a job ends after all reports of its nodes: theirs came first.
            self.exits.setdefault(rank, replace(end, ended_at=max([end.ended_at, *reported])))

    def lose(self, message: str, at: float) -> None:
        """Slurm does not know the job any more: the reports of the nodes count, if all of them have reported."""
        self.exits |= self.outside
        if not self.is_over:
            self.give_up(EndReason.LOST, message, at)

    def give_up(self, reason: EndReason, message: str, at: float) -> None:
        self.verdict = AttemptStatus(
            attempt_id=self.id,
            phase=AttemptPhase.ENDED,
            at=at,
            reason=reason,
            message=message,
            began_at=max(self.up.values(), default=None),
        )

    def _waits_for(self) -> str:
        if self.seen is None or self.seen.state != "PENDING":
            return "given to Slurm"
        return f"waits in Slurm: {plain(self.seen.reason)}"


def _is_final_state(job: SlurmJob) -> bool:
    """The nodes will report nothing more: a node has failed, or the job never began."""
    return job.state in ("NODE_FAIL", "BOOT_FAIL") or job.started_at is None or not job.nodes


def create(layout: Layout, order: LaunchOrder, now: float, owner: JobOwner, secret: str = "") -> Attempt:
    """Stored before the job is submitted, so that the next server knows the attempt. `secret` becomes part of the job's
    name; without one it is random."""
    attempt = Attempt(
        id=order.attempt_id,
        nodes=tuple(instance.node for instance in order.instances),
        gpus={instance.node: instance.gpu_ids for instance in order.instances},
        grace_seconds=order.grace_seconds,
        limit_seconds=order.time_limit_seconds,
        created_at=now,
        owner=owner,
        secret=secret or secrets.token_hex(8),
    )
    record(layout, attempt)
    return attempt


def record(layout: Layout, attempt: Attempt) -> None:
    """Writes the first note of an attempt."""
    document: dict[str, Any] = {
        "nodes": attempt.nodes,
        "gpus": attempt.gpus,
        "grace_seconds": attempt.grace_seconds,
        "limit_seconds": attempt.limit_seconds,
        "created_at": attempt.created_at,
        "uid": attempt.owner.uid,
        "account": attempt.owner.name,
        "secret": attempt.secret,
    }
    if attempt.was_adopted:
        document["adopted"] = {"job": attempt.job_id, "began_at": max(attempt.up.values(), default=None)}
    run_directory.append(layout.order(attempt.id), f"{json.dumps(document)}\n", sync=True)


def note_job(layout: Layout, attempt: Attempt, job_id: int) -> None:
    """Records the Slurm job of an attempt. If a crash loses the record, the job is found again by its name, which
    contains the attempt's secret.
    """
    attempt.job_id, attempt.given_at, attempt.is_confirmed = job_id, clock(), False
    _note(layout, attempt, {"job": job_id}, sync=False)


def conclude(layout: Layout, attempt: Attempt, reason: EndReason, message: str) -> None:
    """Store an end that the engine decided, for the next server too."""
    now = clock()
    attempt.give_up(reason, message, now)
    _note(layout, attempt, {"verdict": {"reason": reason, "message": message, "at": now}}, sync=True)


def _note(layout: Layout, attempt: Attempt, document: Mapping[str, Any], *, sync: bool) -> None:
    # The line before may be incomplete, because the disk was full.
    run_directory.append(layout.order(attempt.id), f"\n{json.dumps(document)}\n", sync=sync)


def load(layout: Layout, attempt_id: str) -> Attempt | None:
    """Loads a recorded attempt; None if it was never ordered. Damaged lines concern this attempt only: it goes on with
    what its files and Slurm show."""
    try:
        lines = [line for line in run_directory.read_lines(layout.order(attempt_id)) if line]
    except OSError as error:
        log.error("the record of attempt %s cannot be read: %s", attempt_id, error)
        lines = [_UNREADABLE]
    if not lines:
        return None
    first, *later = (parse_json(line.encode()) for line in lines)
    attempt = _ordered(attempt_id, first or {}) or _without_order(layout, attempt_id)
    if attempt is None:
        return None
    for note in later:
        _apply(attempt, note or {})
    attempt.was_stopped = os.path.exists(layout.stop(attempt_id))
    attempt.read_reports(layout)
    return attempt


def _ordered(attempt_id: str, document: Mapping[str, Any]) -> Attempt | None:
    """The attempt of an order; None if that is damaged."""
    try:
        attempt = Attempt(
            id=attempt_id,
            nodes=tuple(map(str, document["nodes"])),
            gpus={node: tuple(gpus) for node, gpus in document["gpus"].items()},
            grace_seconds=float(document["grace_seconds"]),
            limit_seconds=None if document["limit_seconds"] is None else float(document["limit_seconds"]),
            created_at=float(document["created_at"]),
            # Earlier versions wrote neither.
            owner=JobOwner(uid=document.get("uid"), name=document.get("account", "")),
            secret=document.get("secret", ""),
        )
        if (adopted := document.get("adopted")) is not None:
            attempt.was_adopted, attempt.job_id = True, int(adopted["job"])
            if (began_at := adopted["began_at"]) is not None:
                attempt.up = dict.fromkeys(range(len(attempt.nodes)), float(began_at))
        return attempt
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _without_order(layout: Layout, attempt_id: str) -> Attempt | None:
    """An attempt whose order is damaged; None if it has no instance either. The directory of its first instance belongs
    to the account of the job, which cannot give it away."""
    ranks = layout.ranks(attempt_id)
    if not ranks:
        return None
    log.error("the record of attempt %s is damaged: what Slurm and its %d instances say counts", attempt_id, ranks)
    return Attempt(
        id=attempt_id,
        nodes=("",) * ranks,
        gpus={},
        grace_seconds=0.0,
        limit_seconds=None,
        created_at=os.stat(layout.order(attempt_id)).st_mtime,
        owner=JobOwner(uid=os.lstat(layout.place(attempt_id, 0)).st_uid),
        is_damaged=True,
    )


def _apply(attempt: Attempt, note: Mapping[str, Any]) -> None:
    """A damaged note is left out: its job is found by its name, and an end that the engine decided is decided again."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        if "job" in note:
            attempt.job_id = int(note["job"])
        if "verdict" in note:
            verdict = note["verdict"]
            attempt.give_up(EndReason(verdict["reason"]), str(verdict["message"]), float(verdict["at"]))


def clock() -> float:
    return time.time()
