"""One attempt as the engine knows it: what was ordered, its Slurm job, and what its instances have written."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from corral.control.ports import AttemptPhase, AttemptStatus, LaunchOrder
from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit, InstanceState, aggregate
from corral.engines.slurm.attempts import run_directory
from corral.engines.slurm.attempts.ends import ended_by_slurm, exit_from_slurm, parse_exit, reported_time
from corral.engines.slurm.attempts.run_directory import Layout
from corral.engines.slurm.slurm_api.clean_text import plain
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob

#: How long what nodes write may take until the server sees it: network file systems keep what they knew for a while.
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
    #: whose job it is in Slurm
    owner: JobOwner = field(default_factory=JobOwner)
    #: part of the job's name from the moment in which Slurm has it: nobody can have named a job so before
    secret: str = ""
    job_id: int | None = None
    #: Slurm itself says that the job with this id is the account's: sbatch runs as that account, which may change what
    #: it prints, and a Slurm that was set up anew counts from the beginning
    is_confirmed: bool = False
    was_stopped: bool = False
    up: dict[int, float] = field(default_factory=dict)
    exits: dict[int, InstanceExit] = field(default_factory=dict)
    #: those that somebody else than corral has asked to end: Slurm says in the end why
    outside: dict[int, InstanceExit] = field(default_factory=dict)
    #: the Slurm job that says that it runs this attempt
    claimed_by: int | None = None
    #: how far what its instances write was read
    read_bytes: dict[int, int] = field(default_factory=dict)
    #: when the job was given to Slurm, as far as this server knows
    given_at: float = 0.0
    #: as Slurm last told, and since when it says that the job is over
    seen: SlurmJob | None = None
    over_since: float | None = None
    #: how it ended for the engine itself: it was never given to Slurm, or was taken back from it
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

    def status(self) -> AttemptStatus | None:
        """None while nobody has it: then launching it again is right."""
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
        """Read what the nodes have written. A line that no node of ours wrote is none: what Slurm says counts then."""
        for rank in range(len(self.nodes)):
            if rank in self.exits:
                continue
            done = self.read_bytes.get(rank, 0)
            lines, self.read_bytes[rank] = run_directory.read_on(f"{layout.place(self.id, rank)}/told", done)
            for number, line in enumerate(lines):
                with contextlib.suppress(ValueError):
                    self._take_line(rank, *line.split(" ", 1), is_first=not done and not number)

    def _take_line(self, rank: int, word: str, rest: str = "", *, is_first: bool) -> None:
        """Raises ValueError for what no node of ours wrote."""
        now = clock()
        if word == "claimed" and is_first:
            self.claimed_by = int(rest)
        elif word == "up":
            self.up.setdefault(rank, reported_time(rest, self.created_at, now))
        elif word == "end":
            told = parse_exit(rest, limit_seconds=self.limit_seconds, since=self.created_at, now=now)
            by_others = told.is_from_outside and not self.was_stopped
            (self.outside if by_others else self.exits)[rank] = told.exit

    def follow(self, job: SlurmJob | None, layout: Layout, now: float) -> None:
        """What Slurm says counts only where the nodes have left no word, and a while after it said so."""
        self.seen = job
        self.is_confirmed |= job is not None
        if job is None or not job.is_over or self.is_over:
            return
        if self.over_since is None:
            self.over_since = now
        self.read_reports(layout)
        have_reported = len(self.outside) + len(self.exits) == len(self.nodes)
        if now < self.over_since + SETTLE_SECONDS and not have_reported and not _says_all(job):
            return
        if not ended_by_slurm(job):
            self.exits |= self.outside
        told = exit_from_slurm(job, has_begun=layout.was_claimed(self.id), was_stopped=self.was_stopped, now=now)
        # Slurm tells whole seconds, and a job ends after all that its nodes have told: theirs came first.
        told = replace(told, ended_at=max([told.ended_at, *(end.ended_at for end in self.exits.values())]))
        for rank in range(len(self.nodes)):
            self.exits.setdefault(rank, told)

    def lose(self, message: str, at: float) -> None:
        """Slurm does not know it any more: what its nodes said counts, if all of them have."""
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


def _says_all(job: SlurmJob) -> bool:
    """The nodes will write nothing any more: theirs has failed, or the job never began."""
    return job.state in ("NODE_FAIL", "BOOT_FAIL") or job.started_at is None or not job.nodes


def create(layout: Layout, order: LaunchOrder, now: float, owner: JobOwner) -> Attempt:
    """Written down before Slurm hears of it: so the next server knows it."""
    attempt = Attempt(
        id=order.attempt_id,
        nodes=tuple(instance.node for instance in order.instances),
        gpus={instance.node: instance.gpu_ids for instance in order.instances},
        grace_seconds=order.grace_seconds,
        limit_seconds=order.time_limit_seconds,
        created_at=now,
        owner=owner,
        secret=secrets.token_hex(8),
    )
    document = {
        "nodes": attempt.nodes,
        "gpus": attempt.gpus,
        "grace_seconds": attempt.grace_seconds,
        "limit_seconds": attempt.limit_seconds,
        "created_at": attempt.created_at,
        "uid": owner.uid,
        "account": owner.name,
        "secret": attempt.secret,
    }
    _note(layout, attempt, document, sync=True)
    return attempt


def note_job(layout: Layout, attempt: Attempt, job_id: int) -> None:
    """If a crash takes it away, the job is found again by its name, in which the attempt's secret is."""
    attempt.job_id, attempt.given_at, attempt.is_confirmed = job_id, clock(), False
    _note(layout, attempt, {"job": job_id}, sync=False)


def conclude(layout: Layout, attempt: Attempt, reason: EndReason, words: str) -> None:
    """The engine's own word about an end, for the next server too."""
    now = clock()
    attempt.give_up(reason, words, now)
    _note(layout, attempt, {"verdict": {"reason": reason, "message": words, "at": now}}, sync=True)


def _note(layout: Layout, attempt: Attempt, document: Mapping[str, Any], *, sync: bool) -> None:
    run_directory.append(layout.order(attempt.id), f"{json.dumps(document)}\n", sync=sync)


def load(layout: Layout, attempt_id: str) -> Attempt | None:
    """None if it was never ordered."""
    lines = run_directory.read_lines(layout.order(attempt_id))
    if not lines:
        return None
    document, *later = map(json.loads, lines)
    notes = {name: value for note in later for name, value in note.items()}
    attempt = Attempt(
        id=attempt_id,
        nodes=tuple(document["nodes"]),
        gpus={node: tuple(gpus) for node, gpus in document["gpus"].items()},
        grace_seconds=document["grace_seconds"],
        limit_seconds=document["limit_seconds"],
        created_at=document["created_at"],
        # Earlier servers wrote neither.
        owner=JobOwner(uid=document.get("uid"), name=document.get("account", "")),
        secret=document.get("secret", ""),
        job_id=notes.get("job"),
        was_stopped=os.path.exists(layout.stop(attempt_id)),
    )
    if (verdict := notes.get("verdict")) is not None:
        attempt.give_up(EndReason(verdict["reason"]), verdict["message"], verdict["at"])
    attempt.read_reports(layout)
    return attempt


def clock() -> float:
    return time.time()
