"""How instances ended: each reason of Kubernetes is one of corral's, with Kubernetes' own words."""

from __future__ import annotations

from typing import Any

import pytest

from corral.core.model import EndReason
from corral.engines.kubernetes.attempts.ends import Known, exit_of, parse_report
from corral.engines.kubernetes.attempts.waits import WaitKind, wait_of
from tests.unit.engines.kubernetes.objects import Json, condition, ended, pod

KNOWN = Known(was_stopped=False, limit_seconds=10.0, created_at=0.0, up_at=100.0, now=2e9)


def end(body: Json, **known: Any) -> tuple[EndReason, int | None, str]:
    fields = {name: getattr(KNOWN, name) for name in Known.__slots__}
    found = exit_of(body, Known(**{**fields, **known}))
    assert found is not None
    return found.reason, found.exit_code, found.message


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ended("corral exit_code 0 1.00 2.00 2.00 \n"), (EndReason.EXIT_CODE, 0, "")),
        (ended("corral exit_code 3 1.00 2.00 2.00 \n", code=3), (EndReason.EXIT_CODE, 3, "exit code 3")),
        (ended("corral exit_code 139 1.00 2.00 2.00 \n", code=139), (EndReason.EXIT_CODE, 139, "killed by SIGSEGV")),
        (
            ended("corral timed_out 143 1.00 11.00 11.00 \n", code=143),
            (EndReason.TIMED_OUT, 143, "reached its time limit of 10 s"),
        ),
        (
            ended("corral launch_error - - - 1.00 x: command not found\n", code=1),
            (EndReason.LAUNCH_ERROR, None, "x: command not found"),
        ),
        (
            ended("corral exit_code 137 1.00 2.00 2.00 \n", code=137, reason="OOMKilled"),
            (EndReason.OOM_KILLED, 137, "used more than its memory; the kernel killed it"),
        ),
        (ended("", code=137, reason="Error"), (EndReason.EXIT_CODE, 137, "killed by SIGKILL")),
        (ended("rubbish of the job", code=4, reason="Error"), (EndReason.EXIT_CODE, 4, "exit code 4")),
        (
            ended('exec: "/bin/sh": stat /bin/sh: no such file', code=128, reason="StartError"),
            (EndReason.LAUNCH_ERROR, None, "the image has no /bin/sh, which corral needs to start the program"),
        ),
        (
            ended("failed to start containerd task: ttrpc: closed", code=128, reason="StartError"),
            (EndReason.LOST, None, "the container cannot be started: failed to start containerd task: ttrpc: closed"),
        ),
    ],
)
def test_ends_of_containers(state: Json, expected: tuple[EndReason, int | None, str]) -> None:
    assert end(pod(phase="Failed", state=state)) == expected


STOPPED = ended("corral stopped 143 1.00 2.00 2.50 \n", code=143)


@pytest.mark.parametrize(
    ("reason", "expected", "words"),
    [
        ("PreemptionByScheduler", EndReason.PREEMPTED, "preempted it for a pod of higher priority: for pod x"),
        ("EvictionByEvictionAPI", EndReason.EVICTED, "evicted in Kubernetes"),
        ("DeletionByTaintManager", EndReason.EVICTED, "a taint of its node"),
        ("DeletionByPodGC", EndReason.NODE_LOST, "its node is gone"),
        ("TerminationByKubelet", EndReason.EVICTED, "the kubelet of its node ended it"),
    ],
)
def test_disrupted_pod_has_the_reason_of_kubernetes(reason: str, expected: EndReason, words: str) -> None:
    target = condition("DisruptionTarget", "True", reason, "for pod x")
    found = end(pod(phase="Failed", state=STOPPED, is_leaving=True, conditions=[target]))
    assert found[0] is expected
    assert words in found[2]


def test_a_program_that_had_ended_by_itself_was_not_disrupted() -> None:
    target = condition("DisruptionTarget", "True", "EvictionByEvictionAPI")
    state = ended("corral exit_code 0 1.00 2.00 2.00 \n")
    assert end(pod(phase="Succeeded", state=state, is_leaving=True, conditions=[target]))[:2] == (
        EndReason.EXIT_CODE,
        0,
    )


def test_corrals_own_stop_is_the_programs_exit() -> None:
    body = pod(phase="Failed", state=STOPPED, is_leaving=True)
    assert end(body, was_stopped=True) == (EndReason.EXIT_CODE, 143, "killed by SIGTERM")
    assert end(body) == (EndReason.LOST, 143, "another user of Kubernetes deleted its pod")


@pytest.mark.parametrize(
    ("reason", "message", "expected", "words"),
    [
        ("Evicted", "The node was low on resource: memory.", EndReason.EVICTED, "low on resource: memory"),
        ("Evicted", "Pod ephemeral local storage usage exceeds the total limit", EndReason.DISK_QUOTA, "exceeds"),
        ("UnexpectedAdmissionError", "no devices left", EndReason.PREEMPTED, "rejected it: UnexpectedAdmissionError"),
        ("OutOfnvidia.com/gpu", "", EndReason.PREEMPTED, "rejected it: OutOfnvidia.com/gpu"),
        ("DeadlineExceeded", "", EndReason.TIMED_OUT, "deadline"),
        ("NodeLost", "", EndReason.NODE_LOST, "its node is lost"),
    ],
)
def test_pods_that_never_ran(reason: str, message: str, expected: EndReason, words: str) -> None:
    found = end(pod(phase="Failed", reason=reason, message=message))
    assert found[0] is expected
    assert words in found[2]


def test_a_pod_that_was_deleted_before_it_was_placed() -> None:
    body = pod(phase="Pending", node=None, is_leaving=True)
    assert end(body, was_stopped=True) == (EndReason.EXIT_CODE, None, "stopped before it began")
    assert end(body)[0] is EndReason.LOST
    assert exit_of(pod(phase="Pending", is_leaving=True), KNOWN) is None, "its kubelet reports its end"


def test_times_are_measured_from_the_first_line_of_the_log() -> None:
    found = exit_of(pod(phase="Failed", state=STOPPED), KNOWN)
    assert found is not None
    assert (found.main_ended_at, found.ended_at) == (101.0, 101.5)


@pytest.mark.parametrize(
    "text", ["", "corral", "corral exit_code 999 1 1 1", "corral exit_code x 1 1 1", "corral no 1 1 1 1"]
)
def test_forged_termination_messages_are_ignored(text: str) -> None:
    assert parse_report(text) is None


def waiting(reason: str, message: str = "") -> Json:
    return pod(phase="Pending", state={"waiting": {"reason": reason, "message": message}})


def test_why_a_pod_waits() -> None:
    message = "0/4 nodes are available: 1 Insufficient nvidia.com/gpu."
    unplaced = wait_of(pod(node=None, conditions=[condition("PodScheduled", "False", "Unschedulable", message)]))
    assert (unplaced.kind, unplaced.message) == (WaitKind.UNPLACED, message)
    assert wait_of(waiting("ContainerCreating")).kind is WaitKind.PREPARING
    assert wait_of(waiting("ImagePullBackOff", "connection refused")).kind is WaitKind.PULL
    gone = wait_of(waiting("ErrImagePull", "docker.io/x/y: not found"))
    assert (gone.kind, gone.reason) == (WaitKind.NEVER, EndReason.IMAGE_PULL_ERROR)
    busy = wait_of(waiting("CreateContainerError", "context deadline exceeded"))
    assert (busy.kind, busy.reason) == (WaitKind.CREATION, EndReason.LAUNCH_ERROR)
    late = wait_of(waiting("CreateContainerConfigError", "failed to sync secret cache: timed out"))
    assert late.kind is WaitKind.CREATION
    program = wait_of(waiting("RunContainerError", 'exec: "/bin/sh": stat /bin/sh: no such file or directory'))
    assert (program.kind, program.reason) == (WaitKind.NEVER, EndReason.LAUNCH_ERROR)
