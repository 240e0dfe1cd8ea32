"""The attempts with pods, loaded from the engine's records at the start."""

from __future__ import annotations

import logging
from collections.abc import Set

from corral.engines.attempt_table import AttemptTable
from corral.engines.kubernetes.api.pod_refs import namespace_of
from corral.engines.kubernetes.attempts import pod_attempt
from corral.engines.kubernetes.attempts.pod_attempt import Attempt
from corral.engines.kubernetes.attempts.records import Records

log = logging.getLogger("corral.engines.kubernetes")


class PodAttempts(AttemptTable[Attempt]):
    def __init__(self, records: Records) -> None:
        super().__init__()
        for attempt_id in records.live():
            if (attempt := pod_attempt.load(records, attempt_id)) is None:
                _discard(records, attempt_id)
            else:
                self.add(attempt)

    def namespaces(self, home: str) -> set[str]:
        """The namespaces of their pods; `home` is the engine's own."""
        return {namespace_of(pod, home) for attempt in self.all() for pod in attempt.pods}

    def with_pod(self, name: str) -> list[str]:
        """The ids of the attempts that have a pod of this name."""
        return [attempt.id for attempt in self.all() if name in attempt.pods]

    def outside_of(self, nodes: Set[str]) -> list[str]:
        """The ids of the attempts that are not over and have an instance on another node than these."""
        return [attempt.id for attempt in self.all() if not attempt.is_over and not nodes >= set(attempt.nodes)]

    def with_time_limit(self, silent_nodes: Set[str]) -> list[str]:
        """The ids of the attempts that wait for a start, an end, a pod that the watch does not show yet, or a silent
        node, each with a time limit."""
        return [
            attempt.id
            for attempt in self.all()
            if not attempt.is_over
            and (
                len(attempt.up) < len(attempt.nodes)
                or attempt.end_seen_at
                or attempt.was_stopped
                or len(attempt.seen.keys() | attempt.exits.keys()) < len(attempt.nodes)
                or not silent_nodes.isdisjoint(attempt.nodes)
            )
        ]


def _discard(records: Records, attempt_id: str) -> None:
    """Discard an attempt without a usable record. A crash has cut off its order, and it has no pods; or the record is
    damaged, and is made anew from its pods."""
    log.warning("the record of attempt %s is incomplete or damaged: its pods are looked for", attempt_id)
    records.note_not_adopted()
    try:
        records.forget(attempt_id, delete_logs=True)
    except OSError as error:
        log.warning("the files of attempt %s cannot be removed: %s", attempt_id, error)
