"""Attempts that an earlier server launched: brings them up to date when the engine starts, and adopts pods whose
records are gone after a backup was restored."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from corral.control.ports import EngineUnavailable
from corral.engines.kubernetes import pod_adoption
from corral.engines.kubernetes.api.objects import annotations_of
from corral.engines.kubernetes.api.pod_refs import ref_of
from corral.engines.kubernetes.attempts import pod_attempt
from corral.engines.kubernetes.attempts.pod_attempt import Attempt, clock
from corral.engines.kubernetes.attempts.pods import ATTEMPT_LABEL
from corral.engines.kubernetes.attempts.records import Records
from corral.engines.kubernetes.cluster.watches import ClusterWatches
from corral.engines.kubernetes.pod_attempts import PodAttempts
from corral.engines.kubernetes.removals import Removals

log = logging.getLogger("corral.engines.kubernetes")

#: How long the logs of attempts that ended while no server lived are waited for at the start.
ADOPT_SECONDS = 20.0


class EarlierAttempts:
    """Safe for several threads. `refresh` updates an attempt from its pods; it raises EngineUnavailable. `look_at`
    makes the watcher report attempts."""

    def __init__(
        self,
        *,
        records: Records,
        attempts: PodAttempts,
        removals: Removals,
        watches: ClusterWatches,
        refresh: Callable[[Attempt], bool],
        look_at: Callable[[Iterable[str]], None],
        is_closed: Callable[[], bool],
    ) -> None:
        self._records = records
        self._attempts = attempts
        self._removals = removals
        self._watches = watches
        self._refresh = refresh
        self._look_at = look_at
        self._is_closed = is_closed
        self._earlier = attempts.all()
        #: whether pods without records may belong to attempts that are to be adopted
        self.may_adopt = records.may_adopt
        self.are_up_to_date = threading.Event()

    def bring_up_to_date(self) -> None:
        """Updates the attempts of an earlier server: `observe` reports what happened to them meanwhile."""
        try:
            self._bring_up_to_date()
        except Exception:
            log.exception("attempts of an earlier server are brought up to date later")
        finally:
            self.are_up_to_date.set()

    def _bring_up_to_date(self) -> None:
        if not self._earlier and not self.may_adopt:
            return
        self._watches.wait_for_lists()
        if not self._watches.trouble:
            self._earlier += self.adopt_pods()
        deadline = time.monotonic() + ADOPT_SECONDS
        pending: Iterable[Attempt] = list(self._earlier)
        while pending and time.monotonic() < deadline and not self._watches.trouble and not self._is_closed():
            for attempt in pending:
                try:
                    self._refresh(attempt)
                except EngineUnavailable as error:
                    log.warning("attempt %s: %s", attempt.id, error)
            # Only those whose logs are still read.
            pending = [attempt for attempt in pending if attempt.end_seen_at and not attempt.is_over]
            time.sleep(0.01 if pending else 0.0)
        # Not those that were launched meanwhile: their ends are to be reported.
        for attempt in self._earlier:
            if (status := attempt.status()) is not None:
                attempt.reported = status.phase

    def adopt_pods(self) -> list[Attempt]:
        """Once, before the first observation: a restored server goes on with what still runs, and removes the rest.
        Returns what still runs."""
        adopted: list[Attempt] = []
        with self._attempts.lock:
            if not self.may_adopt:
                return adopted
            pods = list(self._watches.pods.own().values())
            installation, home = self._records.installation, self._watches.pods.namespaces[0]
            for attempt_id, document in pod_adoption.documents(pods, installation, home, clock()):
                if self._attempts.get(attempt_id) is None and not self._records.was_ordered(attempt_id):
                    attempt = pod_attempt.record(self._records, attempt_id, document)
                    pod_attempt.note(self._records, attempt, {"created": clock()}, sync=True)
                    self._attempts.add(attempt)
                    adopted.append(attempt)
                    log.warning("attempt %s runs in Kubernetes without a record: it is taken up again", attempt_id)
            for pod in pods:
                if self._attempts.get(annotations_of(pod).get(ATTEMPT_LABEL, "")) is None:
                    self._removals.add(ref_of(pod, home))
            self._records.note_adopted()
            self.may_adopt = False
        self._look_at(attempt.id for attempt in adopted)
        return adopted
