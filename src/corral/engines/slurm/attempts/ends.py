"""How an attempt's instances ended: from the reports of their nodes, or else from Slurm's state. Pure."""

from __future__ import annotations

import math
import signal as signals
from dataclasses import dataclass

from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit
from corral.engines.attempts.clean_text import plain
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob

#: Slurm's states for an end that the program did not cause.
_REASONS = {
    "OUT_OF_MEMORY": EndReason.OOM_KILLED,
    "TIMEOUT": EndReason.TIMED_OUT,
    "DEADLINE": EndReason.TIMED_OUT,
    "NODE_FAIL": EndReason.NODE_LOST,
    "BOOT_FAIL": EndReason.NODE_LOST,
    "PREEMPTED": EndReason.PREEMPTED,
    "REVOKED": EndReason.EVICTED,
    # Not by corral: by another user of Slurm, or because its controller lost the job in a crash. corral starts the job
    # again.
    "CANCELLED": EndReason.LOST,
}
_OUTSIDE = "outside"
#: The end reasons that corral's script on the nodes writes.
_REPORTED = {
    "exit_code": EndReason.EXIT_CODE,
    _OUTSIDE: EndReason.EXIT_CODE,
    "timed_out": EndReason.TIMED_OUT,
    "oom_killed": EndReason.OOM_KILLED,
    "launch_error": EndReason.LAUNCH_ERROR,
    "image_pull_error": EndReason.IMAGE_PULL_ERROR,
}
#: Ends of attempts whose program never began; their lines have a message.
_UNBEGUN = (EndReason.LAUNCH_ERROR, EndReason.IMAGE_PULL_ERROR)
#: Slurm's reasons for a job that waits for other jobs.
_PLACE_IS_TAKEN = ("Resources", "Priority")
_MESSAGES = {
    "OUT_OF_MEMORY": "used more than its memory; Slurm ended it (OUT_OF_MEMORY)",
    "TIMEOUT": "reached Slurm's time limit (TIMEOUT)",
    "DEADLINE": "reached Slurm's deadline (DEADLINE)",
    "NODE_FAIL": "its node failed (NODE_FAIL)",
    "BOOT_FAIL": "its node did not boot (BOOT_FAIL)",
    "PREEMPTED": "Slurm preempted it for another job (PREEMPTED)",
    "REVOKED": "another cluster of Slurm took it (REVOKED)",
    "CANCELLED": "it was cancelled in Slurm, or lost there in a crash (CANCELLED)",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedExit:
    """The end of an instance, as its node reported it."""

    exit: InstanceExit
    #: the program was asked to end, but not by corral: Slurm may know the reason better
    is_from_outside: bool = False


def parse_exit(line: str, *, limit_seconds: float | None, since: float, now: float) -> ReportedExit:
    """A line holds the time, reason, exit code and signal, and a message or the time when its program ended. A job may
    write anything into this file: raises ValueError for a line that corral's script does not write, and limits the
    times to `since` … `now`."""
    at, word, code, signal, rest = [*line.split(" ", 4), "", "", "", ""][:5]
    if (reason := _REPORTED.get(word)) is None:
        raise ValueError(f"{word!r} is no reason")
    exit_code = None if code == "-" else _number(code, 255)
    exit = InstanceExit(
        reason=reason,
        ended_at=reported_time(at, since, now),
        exit_code=exit_code,
        message=_message(reason, exit_code, None if signal == "-" else _number(signal, 127), rest, limit_seconds),
        main_ended_at=reported_time(rest, since, now) if reason not in _UNBEGUN else None,
    )
    return ReportedExit(exit=exit, is_from_outside=word == _OUTSIDE)


def _number(text: str, most: int) -> int:
    """Raises ValueError."""
    number = int(text)
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not between 0 and {most}")
    return number


def reported_time(text: str, since: float, now: float) -> float:
    """Clocks of nodes may be wrong, and a job's files may hold anything: the time is limited to `since` … `now`. Raises
    ValueError."""
    at = float(text)
    if not math.isfinite(at):
        raise ValueError(f"{text!r} is no time")
    return min(max(at, since), now)


def _message(reason: EndReason, code: int | None, signal: int | None, rest: str, limit_seconds: float | None) -> str:
    if reason in _UNBEGUN:
        return plain(rest)
    if reason is EndReason.TIMED_OUT:
        return (
            f"reached its time limit of {limit_seconds:g} s" if limit_seconds is not None else "reached its time limit"
        )
    if reason is EndReason.OOM_KILLED:
        return "used more than its memory; the kernel killed it"
    if signal is not None:
        return f"killed by {signal_name(signal)}"
    return f"exit code {code}" if code else ""


def exit_from_slurm(job: SlurmJob, *, has_begun: bool, was_stopped: bool, now: float) -> InstanceExit:
    """The end of an instance whose node reported none: the node died, or Slurm ended it. `has_begun` says whether
    corral's script ever ran for this instance."""
    at = job.ended_at or now
    if was_stopped and job.state in ("CANCELLED", "FAILED", "COMPLETED"):
        if job.started_at is None or job.state == "CANCELLED":
            message = "stopped before it began"
            return InstanceExit(reason=EndReason.EXIT_CODE, ended_at=at, exit_code=None, message=message)
        # By SIGTERM itself if it came before the script handled it, else by SIGKILL after the grace time.
        return _killed(job.signal or signals.SIGKILL, at)
    reason = _REASONS.get(job.state)
    if reason is not None:
        return InstanceExit(reason=reason, ended_at=at, exit_code=None, message=_MESSAGES[job.state])
    if not has_begun:
        # Not the program's fault: it never ran. Slurm sometimes loses a script, or its node does not see corral's
        # files.
        message = (
            f"Slurm could not begin it on its node (exit code {job.exit_code or 0}); does the node see corral's files?"
        )
        return InstanceExit(reason=EndReason.LOST, ended_at=at, exit_code=None, message=message)
    if job.signal:
        return _killed(job.signal, at)
    code = job.exit_code or 0
    return InstanceExit(
        reason=EndReason.EXIT_CODE, ended_at=at, exit_code=code, message=f"exit code {code}" if code else ""
    )


def ended_by_slurm(job: SlurmJob) -> bool:
    """Whether Slurm ended the job, and not its program."""
    return job.state in _REASONS


def why_not_begun(job: SlurmJob) -> str:
    """The message for a job that was taken back from Slurm's queue."""
    if job.reason in _PLACE_IS_TAKEN:
        return f"others in Slurm got its place first (job {job.id} waited for {job.reason})"
    return f"Slurm did not begin it (job {job.id} waited: {job.reason or 'no reason given'})"


def _killed(signal: int, at: float) -> InstanceExit:
    message = f"killed by {signal_name(signal)}"
    return InstanceExit(reason=EndReason.EXIT_CODE, ended_at=at, exit_code=128 + signal, message=message)


def signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
