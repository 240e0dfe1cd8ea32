"""How an instance ended: from the wrapper's termination message, or else from Kubernetes' state of its pod. Pure."""

from __future__ import annotations

import re
import signal as signals
from dataclasses import dataclass

from corral.core.model import EndReason
from corral.engines.attempts.aggregation import InstanceExit
from corral.engines.attempts.clean_text import plain
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import condition, container_status, is_leaving, is_over, moment

#: Why Kubernetes ended a pod, by the reason of its condition DisruptionTarget.
_DISRUPTIONS = {
    "PreemptionByScheduler": (EndReason.PREEMPTED, "Kubernetes preempted it for a pod of higher priority"),
    "EvictionByEvictionAPI": (EndReason.EVICTED, "it was evicted in Kubernetes, as by a drain of its node"),
    "DeletionByTaintManager": (EndReason.EVICTED, "a taint of its node evicted it"),
    "DeletionByPodGC": (EndReason.NODE_LOST, "its node is gone from Kubernetes"),
    "TerminationByKubelet": (EndReason.EVICTED, "the kubelet of its node ended it"),
}
#: The same by the reason in the pod's status.
_STATUS_REASONS = {
    "Evicted": (EndReason.EVICTED, "the kubelet of its node evicted it"),
    "Preempting": (EndReason.PREEMPTED, "its node ended it for a critical pod"),
    "NodeLost": (EndReason.NODE_LOST, "its node is lost"),
    "NodeShutdown": (EndReason.EVICTED, "its node shuts down"),
    "Terminated": (EndReason.EVICTED, "its node shuts down"),
    "Shutdown": (EndReason.EVICTED, "its node shuts down"),
    "DeadlineExceeded": (EndReason.TIMED_OUT, "reached its deadline in Kubernetes"),
}
_STOPPED_EARLY = "stopped before it began"
_REPORTED = ("exit_code", "stopped", "timed_out", "launch_error")
_MAX_SIGNAL = 64
#: Errors of a start that another try does not mend.
_NO_PROGRAM = re.compile(r"exec: .*(not found|no such file|permission denied|format error)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The report of the wrapper. A job can write this file, too: numbers are limited, and a message that the wrapper
    does not write counts as none.
    """

    word: str
    code: int | None
    #: seconds from the beginning of the program to its end, and to the end of its last process
    main_seconds: float
    seconds: float
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """The engine's knowledge of an instance besides its pod."""

    was_stopped: bool
    limit_seconds: float | None
    created_at: float
    #: when its program began, as far as its log shows it
    up_at: float | None
    now: float


def parse_report(text: str) -> Report | None:
    lines = [line for line in text.splitlines() if line.startswith("corral ")]
    if not lines:
        return None
    _, word, code, began, main_ended, ended, message = [*lines[-1].split(" ", 6), "", "", "", "", "", ""][:7]
    try:
        number = None if code == "-" else int(code)
        if word not in _REPORTED or (number is not None and not 0 <= number <= 255):
            return None
        start = None if began == "-" else float(began)
        main = 0.0 if start is None or main_ended == "-" else float(main_ended) - start
        whole = 0.0 if start is None else float(ended) - start
    except ValueError:
        return None
    return Report(
        word=word, code=number, main_seconds=max(0.0, main), seconds=max(0.0, whole), message=plain(message.strip())
    )


def terminated(pod: Json) -> Json | None:
    """How its container ended; None while it has not."""
    return (container_status(pod).get("state") or {}).get("terminated")


def has_ended(pod: Json) -> bool:
    """Whether the job's container uses nothing any more."""
    return is_over(pod) or terminated(pod) is not None


def is_up(pod: Json) -> bool:
    return (container_status(pod).get("state") or {}).get("running") is not None


def up_since(pod: Json) -> float | None:
    """When its container was started; None while it does not run."""
    return moment(((container_status(pod).get("state") or {}).get("running") or {}).get("startedAt"))


def has_log(pod: Json) -> bool:
    """Whether its container was started, so that its log can be read."""
    end = terminated(pod)
    return is_up(pod) or (end is not None and bool(end.get("containerID")))


def exit_of(pod: Json, known: Known) -> InstanceExit | None:
    """How the instance ended; None while it has not."""
    end = terminated(pod)
    if end is not None and (is_over(pod) or not is_leaving(pod) or end.get("containerID")):
        return _from_container(pod, end, known)
    if is_over(pod):
        return _end_without_start(pod, known)
    if is_leaving(pod) and not pod["spec"].get("nodeName"):
        return _end_without_start(pod, known)
    return None


def lost(message: str, now: float, reason: EndReason = EndReason.LOST) -> InstanceExit:
    return InstanceExit(reason=reason, ended_at=now, exit_code=None, message=message)


def _from_container(pod: Json, end: Json, known: Known) -> InstanceExit:
    report = parse_report(str(end.get("message") or ""))
    at, main_at = _times(end, report, known)
    code = report.code if report is not None else int(end.get("exitCode") or 0)

    def exit(reason: EndReason, message: str, exit_code: int | None = code) -> InstanceExit:
        return InstanceExit(reason=reason, ended_at=at, exit_code=exit_code, message=message, main_ended_at=main_at)

    if end.get("reason") == "OOMKilled":
        return exit(EndReason.OOM_KILLED, "used more than its memory; the kernel killed it")
    if report is None and end.get("reason") in ("StartError", "ContainerCannotRun"):
        text = str(end.get("message") or "")
        # Otherwise the fault is the node's, such as a runtime that was restarted meanwhile.
        return exit(EndReason.LAUNCH_ERROR if lacks_program(text) else EndReason.LOST, _cannot_start(text), None)
    if report is not None and report.word == "launch_error":
        return exit(EndReason.LAUNCH_ERROR, report.message, None)
    if report is not None and report.word == "timed_out":
        limit = known.limit_seconds
        text = "reached its time limit" if limit is None else f"reached its time limit of {limit:g} s"
        return exit(EndReason.TIMED_OUT, text)
    if report is None or report.word == "stopped":
        if not known.was_stopped and (outside := _from_outside(pod)) is not None:
            return exit(*outside)
        if report is not None and report.code is None:
            return exit(EndReason.EXIT_CODE, _STOPPED_EARLY, None)
        if report is None and end.get("reason") == "ContainerStatusUnknown":
            if known.was_stopped:
                return exit(EndReason.EXIT_CODE, _STOPPED_EARLY, None)
            return exit(EndReason.LOST, "Kubernetes has lost its container", None)
    return exit(EndReason.EXIT_CODE, _code_message(code))


def _times(end: Json, report: Report | None, known: Known) -> tuple[float, float | None]:
    """Kubernetes counts whole seconds; the wrapper measures the time from the first line of the log."""
    if report is not None and known.up_at is not None:
        ended_at = min(known.up_at + report.seconds, known.now)
        return ended_at, min(known.up_at + report.main_seconds, ended_at)
    finished = moment(end.get("finishedAt"))
    at = known.now if finished is None else min(max(finished, known.created_at, known.up_at or 0.0), known.now)
    return at, None


def _end_without_start(pod: Json, known: Known) -> InstanceExit:
    """The pod is over, or was deleted, and its container never ran."""
    if known.was_stopped:
        return lost(_STOPPED_EARLY, known.now, EndReason.EXIT_CODE)
    status = pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if (outside := _from_outside(pod)) is not None:
        return InstanceExit(reason=outside[0], ended_at=known.now, message=outside[1])
    text = f"the kubelet of its node rejected it: {reason or 'no reason given'}{f': {message}' if message else ''}"
    return InstanceExit(reason=EndReason.PREEMPTED, ended_at=known.now, message=text)


def _from_outside(pod: Json) -> tuple[EndReason, str] | None:
    """Why Kubernetes, or another user of it, ended the pod; None if neither did."""
    status = pod.get("status") or {}
    text = str(status.get("message") or "")
    if "exceeds" in text and "storage" in text:
        return EndReason.DISK_QUOTA, text
    target = condition(pod, "DisruptionTarget")
    known = _DISRUPTIONS.get(str(target.get("reason"))) if target.get("status") == "True" else None
    if known is None and (known := _STATUS_REASONS.get(str(status.get("reason")))) is None:
        if is_leaving(pod):
            return EndReason.LOST, "another user of Kubernetes deleted its pod"
        return None
    detail = text or str(target.get("message") or "")
    return known[0], f"{known[1]}: {detail}" if detail else known[1]


def lacks_program(message: str) -> bool:
    """Whether a container cannot be started anywhere, because the image has no such program."""
    return _NO_PROGRAM.search(message) is not None


def _cannot_start(message: str) -> str:
    if "/bin/sh" in message:
        return "the image has no /bin/sh, which corral needs to start the program"
    return f"the container cannot be started: {message}"


def _code_message(code: int | None) -> str:
    if not code:
        return ""
    if 128 < code <= 128 + _MAX_SIGNAL:
        try:
            return f"killed by {signals.Signals(code - 128).name}"
        except ValueError:
            return f"killed by signal {code - 128}"
    return f"exit code {code}"
