"""Launches attempts: prepares their storage and files, submits their Slurm jobs, and ends those that cannot be
submitted."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence

from corral.control.ports import EngineUnavailable, LaunchOrder, LaunchRefused
from corral.core.model import EndReason
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.launch_locks import LaunchLocks
from corral.engines.order_checks import command_problem
from corral.engines.slurm.attempts import slurm_attempt
from corral.engines.slurm.attempts.preparation import Preparations, Prepared
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.attempts.storage import take_long, with_sources
from corral.engines.slurm.attempts.submissions import Submissions
from corral.engines.slurm.attempts.tracking import JobTracker, asked
from corral.engines.slurm.cluster.partitions import PartitionClosed, Partitions
from corral.engines.slurm.slurm_api.commands import SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import JobOwner
from corral.engines.slurm.slurm_attempts import SlurmAttempts

log = logging.getLogger("corral.engines.slurm")


class SlurmLaunches:
    """Safe for several threads. `check_open` raises EngineUnavailable if this server may not launch; `on_submit` is
    called before each submission, and `on_change` after each change of an attempt."""

    def __init__(
        self,
        *,
        attempts: SlurmAttempts,
        submissions: Submissions,
        partitions: Partitions,
        check_open: Callable[[], None],
        on_submit: Callable[[], None],
        on_change: Callable[[], None],
    ) -> None:
        self._attempts = attempts
        self._submissions = submissions
        self._slurm = submissions.slurm
        self._layout = submissions.layout
        self._partitions = partitions
        self._check_open = check_open
        self._on_submit = on_submit
        self._on_change = on_change
        self._locks = LaunchLocks()
        self.tracker = JobTracker(self._slurm, self._layout, submissions.mark, self._note_job, attempts.lock)
        self.preparations = Preparations(
            submissions.mark, self._layout, submissions.storage, os.environ, self._take_prepared
        )

    def launch(self, order: LaunchOrder) -> None:
        """Idempotent by attempt. Raises AttemptTaken, LaunchRefused and EngineUnavailable."""
        # Without the lock of the attempts: writing files and sbatch take long, and other calls must not wait for them.
        with self._locks.of(order.attempt_id):
            self._check_open()
            attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                if (attempt := self._begin(order)) is None:
                    return
            elif attempt.was_submitted or attempt.is_over:
                return
            elif (job := self.tracker.job_of(attempt)) is not None:
                # An earlier server submitted it and crashed before it stored the job's id.
                with self._attempts.lock:
                    self._note_job(attempt, job.id)
                return
            self._on_submit()
            self._submit(order, attempt)

    def withdraw(self, attempt_id: str) -> None:
        """Ends an attempt whose storage is being prepared; nothing happens to another attempt."""
        if (order := self.preparations.drop(attempt_id)) is not None:
            self._end_unlaunched(order, EndReason.EXIT_CODE, "stopped before it began")

    def job_to_stop(self, attempt: Attempt) -> int | None:
        """The Slurm job of an attempt that is being stopped. Without a job the attempt is over; a thread that is just
        submitting it cancels the job."""
        found = None if attempt.was_submitted else self.tracker.job_of(attempt)
        with self._attempts.lock:
            if not attempt.was_submitted and found is not None:
                attempt.job_id = found.id
            if not attempt.was_submitted:
                attempt.give_up(EndReason.EXIT_CODE, "stopped before it began", slurm_attempt.clock())
            return attempt.job_id

    def _begin(self, order: LaunchOrder) -> Attempt | None:
        """The new attempt, with its files; None if it cannot be submitted now: its storage is being prepared, or it
        has ended."""
        if self.preparations.has(order.attempt_id):
            return None
        specs = self._submissions.specs(order)
        if take_long(specs[0]):
            self._submissions.check_new(order)
            self.preparations.begin(order, specs[0])
            return None
        attempt = self._prepare(order, specs)
        if problem := command_problem(order.command):
            attempt.give_up(EndReason.LAUNCH_ERROR, problem, slurm_attempt.clock())
            self._on_change()
            return None
        return attempt

    def _take_prepared(self, order: LaunchOrder, prepared: Prepared) -> None:
        """The storage of the attempt is ready, or failed. Runs on a thread of its own, so it handles every error."""
        try:
            with self._locks.of(order.attempt_id):
                if order.attempt_id in self._attempts:
                    return  # it was stopped meanwhile
                if prepared.problem:
                    self._end_unlaunched(order, EndReason.LAUNCH_ERROR, prepared.problem)
                    return
                specs = {
                    rank: with_sources(mine, prepared.sources) for rank, mine in self._submissions.specs(order).items()
                }
                self._submit(order, self._prepare(order, specs, prepared.log_lines))
        except LaunchRefused as refusal:
            self._end_unlaunched(order, EndReason.LAUNCH_ERROR, str(refusal))
        except EngineUnavailable as error:
            # The controller finds the attempt missing and launches it again.
            log.warning("attempt %s: %s", order.attempt_id, error)
        except Exception as error:
            log.exception("attempt %s could not be launched", order.attempt_id)
            self._end_unlaunched(order, EndReason.LAUNCH_ERROR, f"{type(error).__name__}: {error}")

    def _end_unlaunched(self, order: LaunchOrder, reason: EndReason, message: str) -> None:
        """The attempt ends before it is submitted."""
        with self._attempts.lock:
            attempt = self._attempts.get(order.attempt_id)
            if attempt is None:
                self._submissions.check_new(order)
                attempt = self._submissions.create(order, JobOwner())
                self._attempts.add(attempt)
            if not attempt.is_over and not attempt.was_submitted:
                slurm_attempt.conclude(self._layout, attempt, reason, message)
        self._on_change()

    def _prepare(
        self, order: LaunchOrder, specs: Mapping[int, list[StorageSpec]], log_lines: Sequence[str] = ()
    ) -> Attempt:
        attempt = self._submissions.prepare(order, specs, log_lines)
        self._attempts.add(attempt)
        return attempt

    def _submit(self, order: LaunchOrder, attempt: Attempt) -> None:
        self._check_open()
        try:
            job_id = self._partitions.decide(
                lambda known: self._slurm.submit(self._submissions.submission(order, attempt, known))
            )
        except PartitionClosed as closed:
            # The next plan may choose other nodes: the nodes of that partition count as closed from now on.
            self._conclude(attempt, EndReason.PREEMPTED, f"Slurm did not begin it: {closed}")
            self._on_change()
            return
        except SlurmUnavailable as error:
            raise EngineUnavailable(f"Slurm: {error}") from error
        except (SlurmRefused, LaunchRefused) as refusal:
            message = f"Slurm refuses it: {refusal}" if isinstance(refusal, SlurmRefused) else str(refusal)
            self._conclude(attempt, EndReason.LAUNCH_ERROR, message)
            raise LaunchRefused(message) from refusal
        with self._attempts.lock:
            self._note_job(attempt, job_id)

    def _conclude(self, attempt: Attempt, reason: EndReason, message: str) -> None:
        with self._attempts.lock:
            slurm_attempt.conclude(self._layout, attempt, reason, message)

    def _note_job(self, attempt: Attempt, job_id: int) -> None:
        """Stores the id of the attempt's Slurm job. The caller holds the lock of the attempts."""
        slurm_attempt.note_job(self._layout, attempt, job_id)
        self._layout.note_submission(slurm_attempt.clock())
        if attempt.was_stopped:
            # It was stopped during the submission.
            with contextlib.suppress(EngineUnavailable):
                if self.tracker.confirms(attempt):
                    asked(lambda: self._slurm.cancel(job_id))
        self._on_change()
