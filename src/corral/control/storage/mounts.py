"""Mounts of jobs: resolved when a job is submitted, checked again when it starts and when it is launched.

A job remembers what a name meant when it was submitted, so that it never gets another's data under the same name.
That a volume has one writer is a rule of the scheduler (`core/rules`); here it is decided who may mount what at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from corral.control.datasets import datasets
from corral.control.errors import Forbidden, InsufficientQuota, Invalid, NotFound, WrongState
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import StorageKind, StorageOrder, Transaction
from corral.control.records import LATEST, JobSpec, MountKind, MountSpec, Role, ShareMode, VolumeRecord, VolumeState
from corral.control.storage import volumes
from corral.control.storage.mount_text import MountRequest, check_together, local_bytes
from corral.core.model import CLUSTER_LABEL, Job, Request
from corral.core.quantities import format_bytes
from corral.core.storage.volumes import Volume, VolumeMount, VolumeType

Resolver = Callable[[Transaction, Caller, MountRequest], MountSpec]


def resolved(tx: Transaction, caller: Caller, mounts: Sequence[MountRequest]) -> tuple[MountSpec, ...]:
    """Resolve the requested mounts, and check that the caller may have them; in the order of their paths."""
    check_together([mount.path for mount in mounts])
    found = [RESOLVERS[mount.kind](tx, caller, mount) for mount in mounts]
    return tuple(sorted(found, key=lambda mount: mount.path))


def volume_mounts(mounts: Sequence[MountSpec]) -> tuple[VolumeMount, ...]:
    """The volume mounts as the scheduler needs them; a volume that is mounted twice is written if one of the mounts
    writes.
    """
    writes: dict[str, bool] = {}
    for mount in mounts:
        if mount.volume_id is not None:
            writes[mount.volume_id] = writes.get(mount.volume_id, False) or not mount.read_only
    return tuple(VolumeMount(volume=volume, writes=writes[volume]) for volume in sorted(writes))


def local_bytes_of(mounts: Sequence[MountSpec], nodes: int) -> int:
    """The bytes that an attempt may use on its nodes' local disks."""
    return sum(mount.size_bytes for mount in mounts if mount.kind is MountKind.LOCAL) * nodes


def placed(tx: Transaction, request: Request, mounts: Sequence[MountSpec]) -> Request:
    """The request with the cluster that the volumes are in; refused if they are in several."""
    where: dict[str, str] = {}
    for mount in mounts:
        volume = tx.volumes.get(mount.volume_id) if mount.volume_id is not None else None
        # A bucket can be reached from everywhere.
        if volume is not None and volume.type is not VolumeType.OBJECT:
            where.setdefault(volume.cluster, volume.name)
    asked = dict(request.labels).get(CLUSTER_LABEL)
    if len(where) > 1:
        places = ", ".join(f"{name} in {cluster}" for cluster, name in where.items())
        raise Invalid(f"a job runs in one cluster, and its volumes are in several: {places}", field="mounts")
    for cluster, name in where.items():
        if asked not in (None, cluster):
            raise Invalid(f"volume {name} is in cluster {cluster}, and the job asks for {asked}", field="mounts")
        return in_cluster(request, cluster)
    return request


def in_cluster(request: Request, cluster: str | None) -> Request:
    """None: wherever it is."""
    labels = {key: value for key, value in request.labels if key != CLUSTER_LABEL}
    if cluster is not None:
        labels[CLUSTER_LABEL] = cluster
    return replace(request, labels=tuple(sorted(labels.items())))


def check_local_quota(tx: Transaction, state: State, user: str, jobs: Sequence[Job]) -> None:
    """Checks the quota of local disks: the bytes that live jobs may use count like a volume of that type."""
    asked = sum(job.local_bytes for job in jobs)
    if not asked:
        return
    limits = {(quota.user, quota.type): quota.max_bytes for quota in tx.people.volume_quotas()}
    limit, held = limits.get((user, VolumeType.LOCAL)), local_held(state, user)
    if limit is not None and held + asked > limit:
        raise InsufficientQuota(
            f"insufficient quota for local volumes: asked {format_bytes(asked)}, held {format_bytes(held)}, "
            f"limit {format_bytes(limit)}",
            field="mounts",
            resource="volume_bytes",
            asked=asked,
            held=held,
            limit=limit,
        )


def local_held(state: State, user: str) -> int:
    return sum(job.local_bytes for job in state.snapshot.jobs.values() if job.user == user)


def check_again(tx: Transaction, user: str, spec: JobSpec) -> None:
    """Whether the owner of a job that is started once more, or launched, may still have what it mounts."""
    for mount in spec.mounts:
        if mount.dataset_id is not None and mount.version is not None:
            _check_version(tx, user, mount.dataset_id, mount.version)
        if mount.volume_id is None:
            continue
        volume = tx.volumes.get(mount.volume_id)
        if volume is None or volume.state is VolumeState.DELETING:
            raise WrongState(f"volume {mount.source} at {mount.path} does not exist any more", field="mounts")
        refusal = access_refusal(tx, user, volume, writes=not mount.read_only)
        if refusal is not None:
            raise Forbidden(refusal, field="mounts")


def _check_version(tx: Transaction, user: str, dataset_id: str, version: str) -> None:
    try:
        datasets.mountable(tx, user, dataset_id, version)
    except NotFound as refusal:
        raise WrongState(f"{refusal.detail}: the job mounts it", field="mounts") from None


def access_refusal(tx: Transaction, user: str, volume: VolumeRecord, *, writes: bool) -> str | None:
    """Why a user may not mount it so; None if the user may."""
    if writes and volume.read_only:
        return f"volume {volume.name} is read-only: its object store does not allow writing"
    record = tx.people.user(user)
    caller = Caller(name=user, is_operator=record is not None and record.role is Role.OPERATOR)
    if not volumes.may_read(tx, caller, volume):
        return f"volume {volume.name} of {volume.owner} is not shared with {user}"
    if writes and not volumes.may_write(tx, caller, volume):
        return f"volume {volume.name} of {volume.owner} is shared with {user} to read only"
    return None


# ------------------------------------------------------------------------------------------------ orders


def storage_orders(spec: JobSpec, known: Mapping[str, Volume]) -> tuple[StorageOrder, ...]:
    """The mounts of an order. The access to buckets is secret, and added by a launch step."""
    orders: list[StorageOrder] = []
    taken: set[str] = set()
    for mount in spec.mounts:
        volume = known.get(mount.volume_id or "")
        name = _own_name(volume.name if volume is not None else mount.source.rpartition("/")[2], mount.kind, taken)
        orders.append(
            StorageOrder(
                kind=_storage_kind(mount, volume),
                name=name,
                path=mount.path,
                read_only=mount.read_only,
                id=mount.volume_id or mount.dataset_id or "",
                owner=volume.owner if volume is not None else "",
                version=mount.version or "",
                size_bytes=mount.size_bytes,
                prefetch=mount.prefetch,
            )
        )
    return tuple(orders)


def _own_name(name: str, kind: MountKind, taken: set[str]) -> str:
    """The name of a mount; a second one with the same name becomes NAME-2, as each has its own variable."""
    name = "local" if kind is MountKind.LOCAL else name.partition("@")[0]
    number, found = 1, name
    while variable(found) in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(variable(found))
    return found


def variable(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name).upper()


def _storage_kind(mount: MountSpec, volume: Volume | None) -> StorageKind:
    if mount.kind is MountKind.VOLUME:
        is_bucket = volume is not None and volume.type is VolumeType.OBJECT
        return StorageKind.OBJECT if is_bucket else StorageKind.VOLUME
    return StorageKind.LOCAL if mount.kind is MountKind.LOCAL else StorageKind.DATASET


# ------------------------------------------------------------------------------------------------ by their kinds


def _volume(tx: Transaction, caller: Caller, asked: MountRequest) -> MountSpec:
    try:
        known = asked.known.volume_id if asked.known is not None else None
        volume = volumes.find_volume(tx, caller, known or asked.source)
    except NotFound as refusal:
        raise Invalid(f"{refusal.detail} to mount at {asked.path}", field="mounts") from None
    except Invalid as refusal:
        raise Invalid(refusal.detail, field="mounts") from None
    if volume.state is VolumeState.DELETING:
        raise WrongState(f"volume {volume.name} is being deleted", field="mounts")
    is_bucket = volume.type is VolumeType.OBJECT
    if asked.prefetch and not is_bucket:
        raise Invalid(f"only files of a bucket are fetched: leave prefetch out for {asked.source}", field="mounts")
    is_usually_written = not is_bucket and access_refusal(tx, caller.name, volume, writes=True) is None
    writes = is_usually_written if asked.mode is None else asked.mode is ShareMode.WRITE
    forbidden = access_refusal(tx, caller.name, volume, writes=writes)
    if forbidden is not None:
        raise Forbidden(forbidden, field="mounts")
    return MountSpec(
        kind=MountKind.VOLUME,
        source=asked.source,
        path=asked.path,
        read_only=not writes,
        volume_id=volume.id,
        prefetch=asked.prefetch,
    )


def _local(tx: Transaction, caller: Caller, asked: MountRequest) -> MountSpec:
    if asked.mode is ShareMode.READ or asked.prefetch:
        raise Invalid(
            f"the node's own disk at {asked.path} is empty at first: there is nothing to read or fetch", field="mounts"
        )
    return MountSpec(kind=MountKind.LOCAL, source="", path=asked.path, size_bytes=local_bytes(asked))


def _dataset(tx: Transaction, caller: Caller, asked: MountRequest) -> MountSpec:
    """Resolve the version and keep its id: a run can be repeated after the tag has moved."""
    if asked.mode is ShareMode.WRITE or asked.prefetch:
        raise Invalid(
            f"a version is always there as a whole, and to read: write dataset:{asked.source}", field="mounts"
        )
    name, _, version = asked.source.partition("@")
    try:
        if asked.known is not None and asked.known.dataset_id and asked.known.version:
            dataset, meant = datasets.mountable(tx, caller.name, asked.known.dataset_id, asked.known.version)
        else:
            dataset = datasets.found(tx, caller, name)
            meant = datasets.version_meant(tx, dataset, version or LATEST)
    except (NotFound, Invalid) as refusal:
        raise Invalid(f"{refusal.detail} (to mount at {asked.path})", field="mounts") from None
    return MountSpec(
        kind=MountKind.DATASET,
        source=asked.source,
        path=asked.path,
        read_only=True,
        dataset_id=dataset.id,
        version=meant.id,
    )


#: How a mount of each kind is found.
RESOLVERS: Mapping[MountKind, Resolver] = {
    MountKind.VOLUME: _volume,
    MountKind.LOCAL: _local,
    MountKind.DATASET: _dataset,
}
