"""ResourceClaims: the claim of a pod for the GPUs of its plan, and the devices that a claim has been given. Pure.

A claim has the name of its pod and belongs to it: Kubernetes removes it with the pod, so none is left behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.api.objects import labels_of, name_of
from corral.engines.kubernetes.devices.resource_slices import Device, DeviceKey

API_VERSION = "resource.k8s.io/v1"
#: The name of the claim inside its pod.
POD_CLAIM = "gpus"


def make_resource_claim(pod: Json, devices: Sequence[Device]) -> Json:
    """A claim for these devices and no others. `pod` is the pod as the API server has it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": pod["metadata"]["uid"]}
    requests = [
        {
            "name": f"gpu-{number}",
            "exactly": {
                "deviceClassName": device.device_class,
                "allocationMode": "ExactCount",
                "count": 1,
                "selectors": [{"cel": {"expression": device.selector}}],
            },
        }
        for number, device in enumerate(devices)
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "name": name_of(pod),
            "namespace": pod["metadata"]["namespace"],
            "labels": dict(labels_of(pod)),
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    }


def is_of_pod(claim: Json, pod: Json) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == pod["metadata"]["uid"] for owner in owners)


def has_claim(pod: Json) -> bool:
    """Whether its GPUs are devices of a claim."""
    return bool(pod["spec"].get("resourceClaims"))


def allocated(claim: Json) -> Iterator[DeviceKey]:
    """The devices that the claim holds. Access for monitoring holds none."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess"):
            yield result["driver"], result["pool"], result["device"]
