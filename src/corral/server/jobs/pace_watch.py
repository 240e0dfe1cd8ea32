"""Follows the steps that programs of running jobs report, and notices the ones that hang or slow down."""

from __future__ import annotations

import logging

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.worker import Worker, log_failure
from corral.control.monitoring.stalled_jobs import PaceSighting, is_due, review, watched
from corral.control.ports import Checkpoints, Clock
from corral.core.monitoring.step_rates import PaceRules, Report, Track, begun, followed, pace_of

log = logging.getLogger("corral.server.jobs.pace_watch")

LOOK_SECONDS = 10.0
_ASK_SECONDS = 10.0


class PaceWatch:
    def __init__(self, *, controller: Controller, checkpoints: Checkpoints, rules: PaceRules, clock: Clock) -> None:
        self._controller = controller
        self._checkpoints = checkpoints
        self._rules = rules
        self._clock = clock
        #: by job, with the attempt that a track is of
        self._tracks: dict[str, tuple[int, Track]] = {}
        self._unreadable: set[str] = set()
        # A short limit, as in drills, needs to be looked at more often.
        every = min(LOOK_SECONDS, rules.hung_seconds / 4, rules.window_seconds / 4)
        self._worker = Worker("pace of jobs", self.look, every_seconds=every, first_after=every)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def look(self) -> None:
        """One round."""
        try:
            running = self._controller.inspect(watched).result(_ASK_SECONDS)
            self._tracks = {job_id: kept for job_id, kept in self._tracks.items() if running.get(job_id) == kept[0]}
            self._unreadable &= running.keys()
            sightings = [found for job_id, attempt in running.items() if (found := self._sighting(job_id, attempt))]
            due = self._controller.inspect(lambda state: [each for each in sightings if is_due(state, each)])
            if changed := due.result(_ASK_SECONDS):
                self._controller.execute(review, changed).add_done_callback(
                    log_failure(log, "the pace of jobs could not be recorded", with_traceback=True)
                )
        except ControllerStopped:
            return

    def _sighting(self, job_id: str, attempt: int) -> PaceSighting | None:
        """The reported progress of an attempt; None if its program has reported nothing."""
        try:
            found = self._checkpoints.progress(job_id)
        except OSError as error:
            if job_id not in self._unreadable:
                self._unreadable.add(job_id)
                log.warning("the progress of %s cannot be read: %s", job_id, error)
            return None
        if found is None or found.attempt != attempt:
            return None
        report = Report(step=found.step, at=found.at)
        kept = self._tracks.get(job_id)
        track = begun(report) if kept is None else followed(kept[1], report, self._rules)
        self._tracks[job_id] = (attempt, track)
        return PaceSighting(
            job_id=job_id,
            attempt=attempt,
            pace=pace_of(track, self._clock.now(), self._rules),
            step=track.last.step,
            at=track.last.at,
            steps_per_minute=_per_minute(track.present_rate),
            usual_steps_per_minute=_per_minute(track.usual_rate),
        )


def _per_minute(rate: float | None) -> float | None:
    return None if rate is None else rate * 60
