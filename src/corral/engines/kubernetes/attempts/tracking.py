"""Follows the pods of attempts: from each change of a pod to what is known of its attempt, and to what must be done.

What Kubernetes is asked to do here (begin a gang, take back what it does not place, stop the rest of a broken gang) is
idempotent, and is repeated until the watch shows that it was done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit, must_stop
from corral.engines.attempts.clean_text import plain
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import condition, is_leaving, is_over, joined, moment
from corral.engines.kubernetes.attempts import pod_attempt
from corral.engines.kubernetes.attempts.ends import Known, exit_of, has_log, is_up, lost, terminated, up_since
from corral.engines.kubernetes.attempts.log_streams import LogStreams
from corral.engines.kubernetes.attempts.pod_attempt import Attempt
from corral.engines.kubernetes.attempts.pod_commands import PodCommands, key_of
from corral.engines.kubernetes.attempts.pod_rules import PodRules
from corral.engines.kubernetes.attempts.pods import whole_grace
from corral.engines.kubernetes.attempts.records import Records
from corral.engines.kubernetes.attempts.waits import Wait, WaitKind, wait_of
from corral.engines.kubernetes.cluster.cache import NodeCache
from corral.engines.kubernetes.devices.resource_claims import has_claim

log = logging.getLogger("corral.engines.kubernetes")

#: A pod that was created and that the watch does not show after this long is gone.
UNSEEN_SECONDS = 30.0
#: How long a program may run without a line of its log before it counts as begun.
UNHEARD_SECONDS = 60.0
#: How long a job that was killed may take to end, before it is killed again.
HURRY_SECONDS = 5.0
#: How long its node may fail to create a container.
CREATION_SECONDS = 120.0
#: How long a node may prepare a pod before Kubernetes is asked for failures of the pod.
ASK_SECONDS = 10.0
#: How long the end of a pod waits for the rest of its log.
LOG_SECONDS = 20.0


class PodTracker:
    """The caller makes sure that an attempt is refreshed by one thread at a time."""

    def __init__(
        self,
        *,
        records: Records,
        commands: PodCommands,
        rules: PodRules,
        logs: LogStreams,
        pod: Callable[[str], Json | None],
        nodes: NodeCache,
        why_no_gpus: Callable[[str, Sequence[str]], str],
    ) -> None:
        """`why_no_gpus` has the reason why Kubernetes cannot give GPUs of a node to a pod; "" if none is known."""
        self._why_no_gpus = why_no_gpus
        self._records = records
        self._commands = commands
        self._rules = rules
        self._logs = logs
        self._pod = pod
        self._nodes = nodes

    def refresh(self, attempt: Attempt, now: float) -> None:
        """Raises EngineUnavailable."""
        if attempt.is_over or not attempt.is_created:
            return
        seen = ((rank, self._pod(name)) for rank, name in enumerate(attempt.pods))
        pods = {rank: pod for rank, pod in seen if pod is not None and is_of(attempt, rank, pod)}
        for rank in range(len(attempt.nodes)):
            if rank not in attempt.exits and (end := self._end(attempt, rank, pods.get(rank), now)) is not None:
                pod_attempt.note_exit(self._records, attempt, rank, end)
        if attempt.is_over:
            return
        if attempt.was_stopped:
            if attempt.wanted_by <= now < attempt.kill_at:
                self._hurry(attempt, now)
        elif must_stop(attempt.instances()):
            self.stop(attempt, attempt.grace_seconds)
        elif len(attempt.up) < len(attempt.nodes):
            self._help_begin(attempt, pods, now)

    def stop(self, attempt: Attempt, grace_seconds: float) -> None:
        """A shorter grace time may follow a longer one."""
        by = pod_attempt.clock() + whole_grace(grace_seconds)
        if by < attempt.wanted_by:
            pod_attempt.note(
                self._records, attempt, {"stopped": [by if attempt.kill_at == float("inf") else attempt.kill_at, by]}
            )
        for rank, name in enumerate(attempt.pods):
            if rank not in attempt.exits:
                self._commands.stop(name, whole_grace(grace_seconds))

    def _hurry(self, attempt: Attempt, now: float) -> None:
        """End what a later stop wants to end before the first grace time is over."""
        for rank, name in enumerate(attempt.pods):
            if rank not in attempt.exits and rank in attempt.up:
                self._commands.kill(name)
        attempt.wanted_by = now + HURRY_SECONDS

    def _end(self, attempt: Attempt, rank: int, pod: Json | None, now: float) -> InstanceExit | None:
        if pod is None:
            return self._gone(attempt, rank, now)
        attempt.seen[rank] = pod["metadata"]["uid"]
        if has_log(pod):
            self._logs.follow(attempt, rank, has_ended=terminated(pod) is not None)
        known = Known(
            was_stopped=attempt.was_stopped,
            limit_seconds=attempt.limit_seconds,
            created_at=attempt.created_at,
            up_at=attempt.up.get(rank),
            now=now,
        )
        end = exit_of(pod, known)
        if end is None:
            return self._lost_with_node(attempt, rank, pod, now)
        attempt.ends[rank] = end
        since = attempt.end_seen_at.setdefault(rank, now)
        if not self._logs.is_done(attempt.id, rank) and now - since < LOG_SECONDS:
            return None
        # The log may have shown only now when its program began.
        return exit_of(pod, replace(known, up_at=attempt.up.get(rank)))

    def _gone(self, attempt: Attempt, rank: int, now: float) -> InstanceExit | None:
        """The exit of an instance whose pod is missing in the watch."""
        if rank in attempt.ends:
            # Another user of Kubernetes has removed it while its log was read.
            return attempt.ends[rank]
        if rank not in attempt.seen:
            if now - attempt.pods_made_at < UNSEEN_SECONDS:
                return None
            pod = self._commands.find(attempt.pods[rank])
            if pod is not None and is_of(attempt, rank, pod):
                log.warning("attempt %s: the watch of pods does not show pod %s", attempt.id, attempt.pods[rank])
                return None
        if attempt.was_stopped and rank not in attempt.up:
            return lost("stopped before it began", now, EndReason.EXIT_CODE)
        return lost("its pod is gone from Kubernetes", now)

    def _lost_with_node(self, attempt: Attempt, rank: int, pod: Json, now: float) -> InstanceExit | None:
        name = attempt.nodes[rank]
        is_there = self._nodes.get(name) is not None
        if not pod["spec"].get("nodeName") or (is_there and name not in self._nodes.lost()):
            return None
        message = "Kubernetes hears nothing from its node" if is_there else "its node is gone from Kubernetes"
        return lost(message, now, EndReason.NODE_LOST)

    def _help_begin(self, attempt: Attempt, pods: Mapping[int, Json], now: float) -> None:
        """Open the gates of a gang, let it begin when all its pods are there, and take back what does not begin."""
        if len(pods) < len(attempt.nodes):
            return
        for rank, pod in pods.items():
            if pod["spec"].get("schedulingGates") and not is_leaving(pod):
                self._commands.open_gate(attempt.pods[rank])
        if attempt.is_gang and not attempt.was_begun and all(map(is_up, pods.values())):
            address = str(pods[0]["status"].get("podIP") or "")
            if address:
                self._commands.begin(attempt.pods, address)
                pod_attempt.note(self._records, attempt, {"begun": address})
        self._believe(attempt, pods, now)
        waits = [
            (pod, self._wait(attempt, rank, pod, now))
            for rank, pod in pods.items()
            if not has_log(pod) and not is_over(pod)
        ]
        if waits:
            self._await(attempt, waits, now)

    def _believe(self, attempt: Attempt, pods: Mapping[int, Json], now: float) -> None:
        """A program runs also if its log cannot be read, as when the API server does not reach the kubelet."""
        if attempt.is_gang and not attempt.was_begun:
            return
        for rank, pod in pods.items():
            began_at = up_since(pod)
            if rank in attempt.up or began_at is None or now - max(began_at, attempt.pods_made_at) < UNHEARD_SECONDS:
                continue
            log.warning("attempt %s: the log of pod %s cannot be read", attempt.id, attempt.pods[rank])
            at = min(max(began_at, attempt.created_at), now)
            pod_attempt.note(self._records, attempt, {"up": [rank, at, ""]})

    def _wait(self, attempt: Attempt, rank: int, pod: Json, now: float) -> Wait:
        """Why a pod waits, with what Kubernetes says elsewhere than in the pod."""
        wait = wait_of(pod)
        if wait.kind is WaitKind.UNPLACED and has_claim(pod):
            reason = self._why_no_gpus(attempt.nodes[rank], attempt.gpus[rank])
            return replace(wait, message=joined((reason, wait.message)))
        if wait.kind is WaitKind.PREPARING:
            return replace(wait, message=joined((wait.message, self._last_failure(attempt, rank, pod, now))))
        return wait

    def _last_failure(self, attempt: Attempt, rank: int, pod: Json, now: float) -> str:
        """The last failure of a pod that its node prepares for long: asked for more and more seldom."""
        placed_at = _placed_at(pod)
        asked_at, text = attempt.failures.get(rank, (placed_at or now, ""))
        if placed_at is not None and now - placed_at >= max(ASK_SECONDS, 2 * (asked_at - placed_at)):
            text = self._commands.last_failure(pod)
            attempt.failures[rank] = now, text
        return text

    def _await(self, attempt: Attempt, waits: list[tuple[Json, Wait]], now: float) -> None:
        attempt.waits_for = plain(f"waits in Kubernetes: {waits[0][1].message}")
        never = next((wait for _, wait in waits if wait.kind is WaitKind.NEVER), None)
        failing = next((wait for _, wait in waits if wait.kind in (WaitKind.PULL, WaitKind.CREATION)), None)
        if failing is None:
            attempt.fails_since = None
        elif attempt.fails_since is None:
            attempt.fails_since = now
        elif now - attempt.fails_since >= self._patience(failing):
            never = failing
        unplaced = [(pod, wait) for pod, wait in waits if wait.kind is WaitKind.UNPLACED]
        if never is not None:
            self._end_all(attempt, never.reason, never.message)
        elif (
            unplaced
            and now - attempt.pods_made_at >= self._rules.pending_seconds
            # No program of a gang has begun. A single pod may have been placed at this moment.
            and (attempt.is_gang or self._commands.take_back(unplaced[0][0]))
        ):
            self._end_all(attempt, EndReason.PREEMPTED, f"Kubernetes did not place it: {unplaced[0][1].message}")
        elif late := next((wait for pod, wait in waits if self._is_late(pod, now)), None):
            limit = f"{self._rules.starting_seconds:g} s"
            self._end_all(attempt, EndReason.PREEMPTED, f"its node has not started it within {limit}: {late.message}")

    def _is_late(self, pod: Json, now: float) -> bool:
        placed_at = _placed_at(pod)
        return placed_at is not None and now - placed_at >= self._rules.starting_seconds

    def _patience(self, failing: Wait) -> float:
        return self._rules.pull_seconds if failing.kind is WaitKind.PULL else CREATION_SECONDS

    def _end_all(self, attempt: Attempt, reason: EndReason, message: str) -> None:
        """Ends an attempt none of whose programs has begun."""
        for name in attempt.pods:
            self._commands.stop(name, 1)
        pod_attempt.conclude(self._records, attempt, reason, message)


def _placed_at(pod: Json) -> float | None:
    return moment(condition(pod, "PodScheduled").get("lastTransitionTime")) if pod["spec"].get("nodeName") else None


def is_of(attempt: Attempt, rank: int, pod: Json) -> bool:
    """Whether the pod belongs to the attempt: another user of Kubernetes may have made one of the same name."""
    return key_of(pod) == attempt.key and attempt.seen.get(rank, pod["metadata"]["uid"]) == pod["metadata"]["uid"]
