"""Why a pod has not begun: the message of Kubernetes, and whether it ever will. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from corral.core.model import EndReason
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import condition, container_status
from corral.engines.kubernetes.attempts.ends import lacks_program

#: Errors of a pull that another try does not mend.
_FINAL_PULLS = ("not found", "manifest unknown", "unauthorized", "denied", "forbidden", "invalid reference")
_PULLS = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed")
_NEVER = {
    "InvalidImageName": EndReason.IMAGE_PULL_ERROR,
    "ErrImageNeverPull": EndReason.IMAGE_PULL_ERROR,
}
#: The kubelet tries again: its runtime may be busy or restart, or a secret may not have reached the node yet.
_CREATIONS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CreatePodSandboxError")


class WaitKind(Enum):
    #: the scheduler has not placed it
    UNPLACED = auto()
    #: the node prepares the pod; a pull fails that may succeed later
    PULL = auto()
    #: the node cannot create the container, which may succeed later
    CREATION = auto()
    #: it will never begin
    NEVER = auto()
    #: the node prepares the pod
    PREPARING = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    kind: WaitKind
    #: for the job's owner
    message: str
    reason: EndReason = EndReason.PREEMPTED


def wait_of(pod: Json) -> Wait:
    """The reason why a pod waits whose container has not been started."""
    if not pod["spec"].get("nodeName"):
        text = str(condition(pod, "PodScheduled").get("message") or "")
        return Wait(kind=WaitKind.UNPLACED, message=text or "not placed yet")
    waiting = (container_status(pod).get("state") or {}).get("waiting") or {}
    reason, text = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    message = f"{reason}: {text}" if text else reason or "its node prepares it"
    if reason in _NEVER:
        return Wait(kind=WaitKind.NEVER, message=message, reason=_NEVER[reason])
    if reason in _PULLS:
        is_final = any(word in text.lower() for word in _FINAL_PULLS)
        kind = WaitKind.NEVER if is_final else WaitKind.PULL
        return Wait(kind=kind, message=message, reason=EndReason.IMAGE_PULL_ERROR)
    if reason in _CREATIONS:
        kind = WaitKind.NEVER if lacks_program(text) else WaitKind.CREATION
        return Wait(kind=kind, message=message, reason=EndReason.LAUNCH_ERROR)
    return Wait(kind=WaitKind.PREPARING, message=message)
