"""The rights that the engine needs in Kubernetes, and what does not work without each. One table: the doctor checks it,
and roles are written from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.engines.kubernetes.api.client import ApiClient, Json

_DEVICES = "resource.k8s.io"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    verb: str
    resource: str
    #: the group of the API
    group: str = ""
    #: what it is for
    purpose: str
    #: in all namespaces, or for objects that have none
    is_for_cluster: bool = False
    #: the engine works without it, with less
    is_optional: bool = False
    #: needed only where drivers of Dynamic Resource Allocation publish GPUs
    is_for_devices: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{' in all namespaces' if self.is_for_cluster else ''}"


RIGHTS: tuple[Right, ...] = (
    *(Right(verb=verb, resource="nodes", purpose="see nodes", is_for_cluster=True) for verb in ("list", "watch")),
    *(
        Right(
            verb=verb,
            resource="pods",
            purpose="see what other pods hold, and to find exporters of GPU readings",
            is_for_cluster=True,
            is_optional=True,
        )
        for verb in ("list", "watch")
    ),
    Right(
        verb="patch", resource="nodes", purpose="cordon nodes that are drained", is_for_cluster=True, is_optional=True
    ),
    *(
        Right(verb=verb, resource="pods", purpose="run jobs")
        for verb in ("create", "get", "list", "watch", "patch", "delete")
    ),
    Right(verb="get", resource="pods/log", purpose="read the logs of jobs"),
    # WebSockets are opened by GET; from Kubernetes 1.35 on the right to create is needed as well.
    *(
        Right(
            verb=verb,
            resource="pods/exec",
            purpose="open shells in jobs, and end a job before a grace time that has begun",
            is_optional=True,
        )
        for verb in ("get", "create")
    ),
    *(
        Right(
            verb=verb,
            resource="pods/portforward",
            purpose="reach workbenches from outside of the cluster",
            is_optional=True,
        )
        for verb in ("get", "create")
    ),
    *(
        Right(verb=verb, resource="secrets", purpose="pull images with the logins of users", is_optional=True)
        for verb in ("create", "delete")
    ),
    Right(verb="list", resource="events", purpose="show why a node does not start a pod", is_optional=True),
    *(
        Right(
            verb=verb,
            resource=resource,
            group=_DEVICES,
            purpose=purpose,
            is_for_cluster=True,
            is_optional=True,
            is_for_devices=True,
        )
        for resource, purpose in (
            ("resourceslices", "see the GPUs that drivers publish"),
            ("resourceclaims", "see which of them others hold"),
        )
        for verb in ("list", "watch")
    ),
    *(
        Right(
            verb=verb,
            resource="resourceclaims",
            group=_DEVICES,
            purpose="give the GPUs of drivers to jobs",
            is_optional=True,
            is_for_devices=True,
        )
        for verb in ("create", "get", "delete")
    ),
)


def missing_in(api: ApiClient, namespaces: Sequence[str], *, uses_devices: bool = False) -> Iterator[tuple[str, Right]]:
    """Yields the rights that this account lacks, each with its namespace; "" for the cluster. `uses_devices`: there are
    GPUs of Dynamic Resource Allocation. Raises ApiError and ApiUnavailable."""
    for right in RIGHTS:
        if right.is_for_devices and not uses_devices:
            continue
        for namespace in ("",) if right.is_for_cluster else namespaces:
            if not _has(api, right, namespace):
                yield namespace, right


def _has(api: ApiClient, right: Right, namespace: str) -> bool:
    resource, _, part = right.resource.partition("/")
    attributes: Json = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": part}
    if not right.is_for_cluster:
        attributes["namespace"] = namespace
    body: Json = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return (api.create(_REVIEWS, body).get("status") or {}).get("allowed") is True
