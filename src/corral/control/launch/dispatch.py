"""Puts, after a commit, the effects that a unit of work decided into the outboxes of the engines.

A launch becomes an order here. Files of the job are not touched: the outbox prepares them on its own thread. An effect
that cannot be dispatched now is found again by reconciling.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from corral.control.jobs.checkpoints import checkpoint_env
from corral.control.launch.orders import launch_order
from corral.control.live.changes.pending_effects import PendingEffects
from corral.control.live.outbox import DeleteEffect, ForgetEffect, Lanes, LaunchEffect, RefuseEffect, StopEffect
from corral.control.live.state import State
from corral.control.ports import Store, StoreUnavailable, Workspace
from corral.control.records import JobSpec
from corral.control.system.policies import Policies
from corral.core.jobs.lifecycle import Instruction, Launch, Stop
from corral.core.model import Job, attempt_id, job_of_attempt

log = logging.getLogger("corral.control")


class Dispatch:
    def __init__(self, store: Store, policies: Policies, workspace: Workspace, outboxes: Mapping[str, Lanes]) -> None:
        """`outboxes` are by cluster."""
        self._store = store
        self._policies = policies
        self._workspace = workspace
        self._outboxes = outboxes

    def send(self, state: State, effects: PendingEffects) -> None:
        for instruction in effects.instructions:
            try:
                self._instruct(state, instruction)
            except StoreUnavailable as error:
                log.warning("%s is instructed at the next observation: %s", instruction.attempt_id, error)
            except Exception as error:
                log.exception("%s cannot be instructed", instruction.attempt_id)
                if isinstance(instruction, Launch):
                    message = f"it cannot be prepared: {error}"
                    refusal = RefuseEffect(attempt_id=instruction.attempt_id, message=message)
                    self._outbox_of(state, instruction).put(refusal)
        for cluster, effect in effects.nodes:
            if cluster in self._outboxes:
                self._outboxes[cluster].put(effect)
        if effects.recorded_ends:
            for outbox in self._outboxes.values():
                outbox.put(ForgetEffect(attempt_ids=tuple(effects.recorded_ends)))
        if effects.deleted_jobs:
            for outbox in self._outboxes.values():
                outbox.put(DeleteEffect(attempts={job.id: _attempts(job) for job in effects.deleted_jobs}))

    def _instruct(self, state: State, instruction: Instruction) -> None:
        job, outbox = _job_of(state, instruction), self._outbox_of(state, instruction)
        if isinstance(instruction, Launch):
            if job is not None and job.allocation is not None and job.attempt_id == instruction.attempt_id:
                spec = state.specs.get(job.id) or self._read_spec(state, job.id)
                env = {**self._workspace.env(job.id), **checkpoint_env(self._policies.checkpoints, spec)}
                member = state.snapshot.memberships.get(job.user)
                group = member.group if member is not None else None
                order = launch_order(job, spec, state.snapshot.nodes, env, state.snapshot.volumes, group)
                outbox.put(LaunchEffect(order=order))
        else:
            outbox.put(StopEffect(attempt_id=instruction.attempt_id, grace_seconds=instruction.grace_seconds))

    def _read_spec(self, state: State, job_id: str) -> JobSpec:
        with self._store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None, job_id
        state.keep_spec(job_id, record.spec)
        return record.spec

    def _outbox_of(self, state: State, instruction: Instruction) -> Lanes:
        job = _job_of(state, instruction)
        if isinstance(instruction, Stop) and instruction.cluster is not None and instruction.cluster in self._outboxes:
            return self._outboxes[instruction.cluster]
        if job is not None and job.allocation is not None:
            node = state.snapshot.nodes.get(job.allocation.grants[0].node)
            if node is not None and node.cluster in self._outboxes:
                return self._outboxes[node.cluster]
        return next(iter(self._outboxes.values()))


def _job_of(state: State, instruction: Instruction) -> Job | None:
    return state.snapshot.jobs.get(job_of_attempt(instruction.attempt_id)[0])


def _attempts(job: Job) -> tuple[str, ...]:
    return tuple(attempt_id(job.id, number) for number in range(1, job.attempt + 1))
