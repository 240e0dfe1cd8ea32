"""Decides why an instance ended: end reason, message and exit code from what the supervisor and the kernel observed.

It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from corral.engines.attempts.instance_messages import InstanceSpec
from corral.engines.local.cgroups import Cgroup
from corral.engines.local.containers.container_job import ContainerJob, error_in
from corral.engines.local.supervisors.exits import (
    REASON_EXIT,
    REASON_LAUNCH,
    REASON_OOM,
    REASON_TIME,
    oom_message,
    signal_name,
)

#: The exit codes by which shells and container runtimes report that a signal ended a process.
_KILLED = 128 + signal.SIGKILL
_TERMINATED = 128 + signal.SIGTERM
#: The exit code by which Podman and Docker report that they failed, and not the program.
_RUNTIME_FAILED = 125


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """The supervisor's observations of the end of its job."""

    exit_code: int
    signal_number: int | None
    #: why the program could not be executed; "" if it was
    exec_problem: str
    timed_out: bool
    #: the engine or the time limit ended the job
    must_end: bool
    #: the first process of the container was killed in place of SIGTERM
    ended_first: bool
    #: the end of the output
    tail: bytes


def verdict(
    spec: InstanceSpec, ending: Ending, cgroup: Cgroup | None, container: ContainerJob | None
) -> tuple[str, str, int]:
    """Reason, message and exit code. Removes the container."""
    if container is not None:
        return _container_verdict(spec, ending, cgroup, container)
    reason, message = _verdict(spec, ending, cgroup, ending.exit_code, ending.signal_number)
    return reason, message, ending.exit_code


def _verdict(
    spec: InstanceSpec,
    ending: Ending,
    cgroup: Cgroup | None,
    exit_code: int,
    signal_number: int | None,
    *,
    oom_killed: bool = False,
) -> tuple[str, str]:
    if ending.exec_problem:
        return REASON_LAUNCH, ending.exec_problem
    if ending.timed_out:
        return REASON_TIME, f"ran longer than its time limit of {spec['time_limit_seconds']:g} s"
    if exit_code and cgroup:
        report = cgroup.memory_report()
        if report.oom_kills or (oom_killed and report.own_limit):
            return REASON_OOM, oom_message(spec["memory_bytes"], report.peak_bytes, report.own_limit)
    if signal_number is not None:
        return REASON_EXIT, f"killed by {signal_name(signal_number)}"
    if not exit_code:
        return REASON_EXIT, ""
    refused = cgroup.refused_forks() if cgroup else 0
    limit = f"; it wanted more than its {spec['max_processes']} processes" if refused else ""
    return REASON_EXIT, f"exit code {exit_code}{limit}"


def _container_verdict(
    spec: InstanceSpec, ending: Ending, cgroup: Cgroup | None, container: ContainerJob
) -> tuple[str, str, int]:
    end = container.end()
    container.remove()
    exit_code = ending.exit_code
    has_failed = end.has_started is False or (end.has_started is None and exit_code == _RUNTIME_FAILED)
    if has_failed and not ending.must_end:
        complaint = end.message or error_in(ending.tail)
        return REASON_LAUNCH, complaint or f"the container could not be started (code {exit_code})", exit_code
    if ending.ended_first and exit_code == _KILLED:
        exit_code = _TERMINATED
    # Version 1 counts an OOM kill in the container's own group, which is gone. A SIGKILL that did not come from here is
    # taken for one.
    looks_killed = exit_code == _KILLED and not ending.must_end
    reason, message = _verdict(spec, ending, cgroup, exit_code, None, oom_killed=end.oom_killed or looks_killed)
    if end.oom_killed and reason == REASON_EXIT and exit_code:
        reason, message = REASON_OOM, oom_message(spec["memory_bytes"], 0, own_limit=True)
    return reason, message, exit_code
