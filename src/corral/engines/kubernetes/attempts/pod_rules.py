"""How pods of corral are made on one cluster: the engine's settings, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from corral.engines.attempts.log_segments import DEFAULT_LIMIT_BYTES
from corral.engines.kubernetes.cluster.nodes import FleetRules

#: A pod that Kubernetes has not placed after this long waits for pods of others: it is taken back, and corral plans
#: again.
PENDING_SECONDS = 20.0
#: Kubelets report every ten seconds: one from which nothing is heard for longer than a few reports is lost.
LOST_SECONDS = 25.0
_CLAIM = re.compile(
    r"(?P<claim>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(/(?P<directory>[^:]+))?:(?P<path>/[^:]*[^:/])(?P<read_only>:ro)?"
)
NO_HOME = (
    "checkpoints and outputs of jobs end with their pods: cluster.kubernetes.home names no claim that the server shares"
)
#: The account of jobs if neither an account of the user nor that of the server can be used.
DEFAULT_UID = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimMount:
    """A PersistentVolumeClaim, or a directory in it, that pods mount."""

    claim: str
    path: str
    sub_path: str = ""
    read_only: bool = False


def parse_claim(text: str) -> ClaimMount:
    """CLAIM[/DIRECTORY]:PATH[:ro]. Raises ValueError."""
    match = _CLAIM.fullmatch(text)
    if match is None or ".." in (match["directory"] or "").split("/"):
        raise ValueError(f"{text!r} is not of the form CLAIM:/PATH, CLAIM/DIRECTORY:/PATH or CLAIM:/PATH:ro")
    return ClaimMount(
        claim=match["claim"],
        path=match["path"].rstrip("/"),
        sub_path=(match["directory"] or "").strip("/"),
        read_only=match["read_only"] is not None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PodRules:
    #: the namespace of jobs whose group has none of its own
    namespace: str = "default"
    #: the namespaces of groups
    group_namespaces: Mapping[str, str] = field(default_factory=dict)
    fleet: FleetRules = field(default_factory=FleetRules)
    #: the image of jobs that name none; "" means that they are refused
    default_image: str = ""
    #: secrets of the namespace for pulling images
    pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""
    runtime_class: str = ""
    #: the account of jobs that have no other
    uid: int = DEFAULT_UID
    gid: int = DEFAULT_UID
    #: the claim on which this server keeps the directories of jobs, and where the server sees it
    home: ClaimMount | None = None
    #: claims that every pod mounts
    mounts: tuple[ClaimMount, ...] = ()
    #: the CPUs that a job requests which asks for none, in thousandths for each GPU
    cpu_milli_per_gpu: int = 0
    pending_seconds: float = PENDING_SECONDS
    #: how long a node may send no heartbeat to Kubernetes before its jobs move
    lost_seconds: float = LOST_SECONDS
    #: how long a pull that may succeed later is tried
    pull_seconds: float = 300.0
    #: how long a node may prepare a pod, as it pulls a large image or waits for a volume
    starting_seconds: float = 3600.0
    #: the namespace whose pods are believed to be exporters of readings; "" means none
    exporter_namespace: str = ""
    log_limit_bytes: int = DEFAULT_LIMIT_BYTES

    @property
    def namespaces(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((self.namespace, *self.group_namespaces.values())))

    def namespace_of(self, group: str | None) -> str:
        return self.group_namespaces.get(group or "", self.namespace)

    @property
    def note(self) -> str:
        """The restrictions that jobs must allow for; "" if there are none."""
        return "" if self.home is not None else NO_HOME
