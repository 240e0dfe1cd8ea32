"""The storage of a pod: claims, directories of the node, and the volumes that a job mounts. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from corral.control.ports import LaunchRefused, StorageKind, StorageOrder
from corral.engines.kubernetes.api.client import Json
from corral.engines.kubernetes.attempts.pod_rules import ClaimMount
from corral.engines.storage.job_mounts import mount_environment
from corral.engines.storage.storage_specs import StoragePlaces, storage_specs


@dataclass(slots=True)
class Volumes:
    """The volumes of one pod, and where its container mounts them."""

    volumes: list[Json] = field(default_factory=list)
    mounts: list[Json] = field(default_factory=list)

    def add(self, name: str, source: Json, path: str, *, read_only: bool = False) -> None:
        self.volumes.append({"name": name, **source})
        self._mount(name, path, "", read_only)

    def add_claim(self, mount: ClaimMount, path: str, below: str, *, read_only: bool = False) -> None:
        """Mount the directory `below` of the claim; each claim is one volume of the pod."""
        name = f"claim-{mount.claim}"[:63].rstrip("-.").replace(".", "-")
        if all(volume["name"] != name for volume in self.volumes):
            self.volumes.append({"name": name, "persistentVolumeClaim": {"claimName": mount.claim}})
        parts = [part for part in (mount.sub_path, below) if part not in ("", ".")]
        self._mount(name, path, os.path.join(*parts) if parts else "", read_only or mount.read_only)

    def _mount(self, name: str, path: str, below: str, read_only: bool) -> None:
        mount: Json = {"name": name, "mountPath": path}
        if below:
            mount["subPath"] = below
        if read_only:
            mount["readOnly"] = True
        self.mounts.append(mount)


def mount_storage(
    volumes: Volumes, orders: Sequence[StorageOrder], places: StoragePlaces | None, home: ClaimMount | None
) -> dict[str, str]:
    """Add what a job mounts, and return the variables that name the mounts. Raises LaunchRefused."""
    if not orders:
        return {}
    for order in orders:
        if order.kind in (StorageKind.DATASET, StorageKind.OBJECT):
            raise LaunchRefused(
                f"{order.kind} {order.name} cannot be mounted on a Kubernetes cluster yet: copy it into a volume, or "
                "read it from the program"
            )
    if places is None:
        raise LaunchRefused("this cluster has no storage that jobs could mount")
    specs = storage_specs(orders, places, scratch="/scratch")
    for number, spec in enumerate(specs):
        if spec["kind"] == StorageKind.LOCAL:
            limit = {"sizeLimit": str(spec["size_bytes"])} if spec["size_bytes"] else {}
            volumes.add(f"local-{number}", {"emptyDir": limit}, spec["path"])
        elif home is None or not spec["source"].startswith(f"{home.path.rstrip('/')}/"):
            raise LaunchRefused(
                f"volume {spec['name']} cannot be mounted: volumes of this server are not on a claim that pods can "
                "mount (cluster.kubernetes.home)"
            )
        else:
            below = os.path.relpath(spec["source"], home.path)
            volumes.add_claim(home, spec["path"], below, read_only=spec["read_only"])
    return dict(mount_environment(specs, {spec["path"]: spec["path"] for spec in specs}))
