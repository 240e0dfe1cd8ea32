"""Volumes: storage that outlives jobs. Making, enlarging, sharing and deleting them, within what their owners may hold.

A volume is a row first: `server/storage/volume_upkeep.py` reads the row, makes or removes the directory and reports the
result here. `mounts` has the rules for mounts, `object_stores` the stores of object volumes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from corral.control.errors import Forbidden, InsufficientQuota, InUse, Invalid, NotFound, Taken, WrongState
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.permissions import require
from corral.control.people.user_inbox import note_shares
from corral.control.ports import Transaction, VolumeUse
from corral.control.records import Function, Share, ShareKind, ShareMode, VolumeRecord, VolumeState
from corral.control.storage import object_stores
from corral.control.storage.sharing import Circle, check_shares
from corral.core.counts import counted
from corral.core.model import Job
from corral.core.names import VOLUME_NAME
from corral.core.quantities import format_bytes
from corral.core.snapshot.changes import DropVolume, PutVolume
from corral.core.storage.volumes import VolumeType

VOLUME_ID = re.compile(r"v-[1-9][0-9]{0,17}")
#: The types that are made and kept; a local one comes and goes with its attempt.
KEPT = (VolumeType.BLOCK, VolumeType.FILESYSTEM, VolumeType.OBJECT)
LEAST_BYTES = 1 << 20
MAX_VOLUMES = 1000
#: From this part of its size on a volume's owner is warned.
NEARLY_FULL = 0.9
_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeDraft:
    """A volume as requested."""

    name: str
    type: VolumeType
    size_bytes: int = 0
    #: None means the only one there is
    cluster: str | None = None
    object_store: str | None = None
    prefix: str = ""
    description: str = ""


# ------------------------------------------------------------------------------------------------ looking


def visible(tx: Transaction, caller: Caller) -> list[VolumeRecord]:
    """The caller's volumes and those that are shared with the caller; for operators all."""
    circle = Circle(tx, caller)
    return [volume for volume in tx.volumes.all() if circle.sees(volume.owner, volume.shared)]


def find_volume(tx: Transaction, caller: Caller, ref: str) -> VolumeRecord:
    """The volume of a reference: an id, `owner/name`, or a name; the caller's own volumes come before shared ones."""
    found = _meant(tx, caller, ref)
    own = [volume for volume in found if volume.owner == caller.name]
    if not found:
        raise NotFound(f"there is no volume {ref!r}", field="volume")
    if not own and len(found) > 1:
        names = ", ".join(f"{volume.owner}/{volume.name}" for volume in found[:_NAMED])
        raise Invalid(f"{ref!r} could be any of {names}: say whose", field="volume")
    return own[0] if own else found[0]


def may_read(tx: Transaction, caller: Caller, volume: VolumeRecord) -> bool:
    return Circle(tx, caller).sees(volume.owner, volume.shared)


def may_write(tx: Transaction, caller: Caller, volume: VolumeRecord) -> bool:
    """A read-only volume can be written by no user, also not by operators."""
    return not volume.read_only and Circle(tx, caller).writes(volume.owner, volume.shared)


def jobs_with(state: State, volume_id: str) -> list[Job]:
    """Live jobs that mount it: those that hold it, and those that wait, the oldest first."""
    ids = state.snapshot.active.mounted.users(volume_id)
    return sorted((state.snapshot.jobs[job_id] for job_id in ids), key=lambda job: job.serial)


def held_bytes(volumes: Sequence[VolumeRecord], volume_type: VolumeType) -> int:
    """The bytes that count against the quota of a type: the requested size, whether used or not."""
    return sum(
        volume.size_bytes
        for volume in volumes
        if volume.type is volume_type and volume.state is not VolumeState.DELETING
    )


def held_of(tx: Transaction) -> dict[tuple[str, VolumeType], int]:
    """The same for all users at once."""
    held: dict[tuple[str, VolumeType], int] = {}
    for volume in tx.volumes.all():
        if volume.state is not VolumeState.DELETING:
            key = (volume.owner, volume.type)
            held[key] = held.get(key, 0) + volume.size_bytes
    return held


# ------------------------------------------------------------------------------------------------ changing


def create(work: Work, caller: Caller, draft: VolumeDraft) -> VolumeRecord:
    """A new volume of the caller's own. It can be mounted at once; jobs wait until it is made."""
    require(caller, Function.VOLUMES)
    check_name(draft.name)
    _check_form(draft)
    cluster = _cluster(work.state, draft.cluster)
    own = work.tx.volumes.of_owner(caller.name)
    there = next((volume for volume in own if volume.name == draft.name), None)
    if there is not None:
        gone = ", which is being deleted" if there.state is VolumeState.DELETING else ""
        raise Taken(f"you have a volume {draft.name!r} already{gone}", field="name", name=draft.name)
    if len(own) >= MAX_VOLUMES:
        raise Invalid(
            f"you have {counted(len(own), 'volume')} already: delete one first", held=len(own), limit=MAX_VOLUMES
        )
    is_bucket = draft.type is VolumeType.OBJECT
    prefix = object_stores.clean_prefix(draft.prefix)
    store = object_stores.existing(work.tx, draft.object_store or "", field="object_store") if is_bucket else None
    _check_quota(work, caller.name, draft.type, draft.size_bytes, held_bytes(own, draft.type))
    volume = VolumeRecord(
        id=work.tx.volumes.next_id(),
        name=draft.name,
        owner=caller.name,
        type=draft.type,
        cluster=cluster,
        size_bytes=draft.size_bytes,
        object_store=draft.object_store,
        prefix=prefix,
        # Behind a bucket there is nothing to be made here.
        state=VolumeState.READY if is_bucket else VolumeState.CREATING,
        read_only=store is not None and not store.allow_write,
        created_at=work.now,
        description=draft.description,
    )
    keep(work, volume)
    work.record(caller, "volume.created", volume.id, owner=volume.owner, detail=_detail(volume))
    _note_quota(work, volume.owner, volume.type, draft.size_bytes, held_bytes(own, draft.type))
    return volume


def edit(
    work: Work, caller: Caller, ref: str, *, size_bytes: int | None = None, description: str | None = None
) -> VolumeRecord:
    """Changes the size, the description, or both; None keeps the value."""
    volume = resize(work, caller, ref, size_bytes) if size_bytes is not None else _own(work, caller, ref)
    if description is None or description == volume.description:
        return volume
    described = replace(volume, description=description)
    keep(work, described)
    detail = {"was": volume.description, "description": description}
    work.record(caller, "volume.edited", volume.id, owner=volume.owner, detail=detail)
    return described


def resize(work: Work, caller: Caller, ref: str, size_bytes: int) -> VolumeRecord:
    """Larger, never smaller: what is in it stays in it."""
    volume = _own(work, caller, ref)
    if volume.type is VolumeType.OBJECT:
        raise Invalid(f"volume {volume.name} is a part of a bucket: it has no size here", field="size")
    if volume.state is VolumeState.DELETING:
        raise WrongState(f"volume {volume.name} is being deleted", state=volume.state)
    if size_bytes < volume.size_bytes:
        raise Invalid(
            f"a volume only grows: {volume.name} has {format_bytes(volume.size_bytes)}, "
            f"asked {format_bytes(size_bytes)}",
            field="size",
            asked=size_bytes,
            held=volume.size_bytes,
        )
    held = held_bytes(work.tx.volumes.of_owner(volume.owner), volume.type)
    _check_quota(work, volume.owner, volume.type, size_bytes - volume.size_bytes, held)
    if size_bytes == volume.size_bytes:
        return volume
    larger = replace(volume, size_bytes=size_bytes)
    keep(work, larger)
    detail = {"was": volume.size_bytes, "size_bytes": size_bytes}
    work.record(caller, "volume.resized", volume.id, owner=volume.owner, detail=detail)
    _note_quota(work, volume.owner, volume.type, size_bytes - volume.size_bytes, held)
    return larger


def share(work: Work, caller: Caller, ref: str, shares: Sequence[Share]) -> VolumeRecord:
    """Replaces the shares of a volume. Running jobs keep their mounts."""
    volume = _own(work, caller, ref)
    shared = replace(volume, shared=check_shares(work.tx, shares))
    _check_shares(shared)
    if shared != volume:
        keep(work, shared)
        detail = {"shares": [f"{share.kind.value}:{share.name}:{share.mode.value}" for share in shared.shared]}
        work.record(caller, "volume.shared", volume.id, owner=volume.owner, detail=detail)
        note_shares(work, caller, "volume", volume.id, volume.name, volume.shared, shared.shared)
    return shared


def delete(work: Work, caller: Caller, ref: str) -> VolumeRecord:
    """Deletes a volume with its contents; of a bucket only the name is deleted. Refused while a live job mounts it."""
    volume = _own(work, caller, ref)
    jobs = jobs_with(work.state, volume.id)
    if jobs:
        names = ", ".join(_owner_text(job, volume) for job in jobs[:_NAMED])
        more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
        raise InUse(
            f"volume {volume.name} is mounted by {names}{more}: stop them first",
            field="volume",
            jobs=[job.id for job in jobs[:_NAMED]],
            held=len(jobs),
        )
    if volume.state is VolumeState.DELETING:
        return volume
    going = replace(volume, state=VolumeState.DELETING, message="")
    if volume.type is VolumeType.OBJECT:
        work.tx.volumes.delete(volume.id)
        work.change(DropVolume(id=volume.id))
    else:
        keep(work, going)
    work.record(caller, "volume.deleted", volume.id, owner=volume.owner, detail={"name": volume.name})
    return going


def check_user_free(tx: Transaction, user: str) -> None:
    """Refuse to delete a user who owns volumes: they must not be lost, nor go to the next user of that name."""
    own = tx.volumes.of_owner(user)
    if own:
        names = ", ".join(volume.name for volume in own[:_NAMED])
        raise InUse(
            f"user {user} has {counted(len(own), 'volume')}: {names}; delete them first",
            field="name",
            volumes=[volume.name for volume in own[:20]],
        )


def forget(work: Work, kind: ShareKind, name: str) -> None:
    """Remove the shares with a deleted user or group: the next one of that name is another one."""
    for volume in work.tx.volumes.all():
        left = tuple(share for share in volume.shared if (share.kind, share.name) != (kind, name))
        if left != volume.shared:
            keep(work, replace(volume, shared=left))


# ------------------------------------------------------------------------------------------------ what became of it


def note_made(work: Work, volume_id: str) -> None:
    """Marks a volume as ready to be mounted. A second call changes nothing."""
    volume = work.tx.volumes.get(volume_id)
    if volume is not None and volume.state in (VolumeState.CREATING, VolumeState.FAILED):
        keep(work, replace(volume, state=VolumeState.READY, message=""))
        work.record(SYSTEM, "volume.ready", volume.id, owner=volume.owner, detail={"name": volume.name})


def note_failed(work: Work, volume_id: str, message: str) -> None:
    """Records that creating or removing a volume failed; the owner sees the message, and it is tried again."""
    volume = work.tx.volumes.get(volume_id)
    if volume is None or volume.message == message:
        return
    state = VolumeState.FAILED if volume.state is VolumeState.CREATING else volume.state
    keep(work, replace(volume, state=state, message=message))
    work.record(SYSTEM, "volume.failed", volume.id, owner=volume.owner, detail={"message": message})


def note_gone(work: Work, volume_id: str) -> None:
    """Deletes the record of a volume whose files are removed; its name is free again."""
    volume = work.tx.volumes.get(volume_id)
    if volume is not None and volume.state is VolumeState.DELETING:
        work.tx.volumes.delete(volume_id)
        work.change(DropVolume(id=volume_id), needs_cycle=False)
        work.record(SYSTEM, "volume.gone", volume.id, owner=volume.owner, detail={"name": volume.name})


def note_measured(work: Work, uses: Mapping[str, VolumeUse]) -> None:
    """How much is in each of them now. Who comes near the size is detail, once each time."""
    for volume_id, use in uses.items():
        volume = work.tx.volumes.get(volume_id)
        if volume is None:
            continue
        measured = replace(volume, used_bytes=use.used_bytes, measured_at=work.now)
        keep(work, measured)
        level = _fullness(measured)
        if level and level != _fullness(volume):
            detail = {"used_bytes": use.used_bytes, "size_bytes": volume.size_bytes, "name": volume.name}
            work.record(SYSTEM, f"volume.{level}", volume.id, owner=volume.owner, detail=detail)


def keep(work: Work, volume: VolumeRecord) -> None:
    """Save it, and bring the snapshot up to date where that can change a decision."""
    work.tx.volumes.save(volume)
    if work.state.snapshot.volumes.get(volume.id) != volume.snapshot_volume:
        work.change(PutVolume(volume=volume.snapshot_volume))


# ------------------------------------------------------------------------------------------------ inside


def check_name(name: str) -> None:
    if not VOLUME_NAME.fullmatch(name) or VOLUME_ID.fullmatch(name):
        raise Invalid(
            f"the volume name {name!r} is not allowed: 2 to 63 letters, digits, - and _, and not like v-12",
            field="name",
            length=len(name),
        )


def _check_form(draft: VolumeDraft) -> None:
    """Checks that a draft has the fields of its volume type, and no others."""
    if draft.type not in KEPT:
        raise Invalid(
            "a local volume comes and goes with its job: mount it with --mount local:10GiB:/scratch", field="type"
        )
    if draft.type is VolumeType.OBJECT:
        if draft.size_bytes:
            raise Invalid("a bucket has no size here: leave size out", field="size")
        if not draft.object_store:
            raise Invalid("an object volume is a part of an object store: name one", field="object_store")
        return
    if draft.object_store or draft.prefix:
        field = "object_store" if draft.object_store else "prefix"
        raise Invalid(f"only object volumes are parts of an object store: leave {field} out", field=field)
    if draft.size_bytes < LEAST_BYTES:
        raise Invalid(
            f"a {draft.type.value} volume needs a size of at least {format_bytes(LEAST_BYTES)}: "
            f"asked {format_bytes(draft.size_bytes)}",
            field="size",
            asked=draft.size_bytes,
            limit=LEAST_BYTES,
        )


def _quota(work: Work, owner: str, volume_type: VolumeType) -> int | None:
    limits = {(quota.user, quota.type): quota.max_bytes for quota in work.tx.people.volume_quotas()}
    return limits.get((owner, volume_type))


def _note_quota(work: Work, owner: str, volume_type: VolumeType, added: int, held: int) -> None:
    """An event for the owner when the quota becomes nearly full."""
    limit = _quota(work, owner, volume_type)
    if limit and held < NEARLY_FULL * limit <= held + added:
        text = f"{format_bytes(held + added)} of {format_bytes(limit)} for {volume_type.value} volumes"
        work.record(
            SYSTEM, "quota.nearly-full", owner, owner=owner, detail={"name": volume_type.value, "message": text}
        )


def _check_quota(work: Work, owner: str, volume_type: VolumeType, asked: int, held: int) -> None:
    limit = _quota(work, owner, volume_type)
    if limit is not None and asked > 0 and held + asked > limit:
        raise InsufficientQuota(
            f"insufficient quota for {volume_type.value} volumes: asked {format_bytes(asked)}, "
            f"held {format_bytes(held)}, limit {format_bytes(limit)}",
            field="size",
            resource="volume_bytes",
            asked=asked,
            held=held,
            limit=limit,
        )


def _check_shares(volume: VolumeRecord) -> None:
    for share in volume.shared:
        if (share.kind, share.name) == (ShareKind.USER, volume.owner):
            raise Invalid(f"volume {volume.name} is {share.name}'s own", field="shares")
        if volume.read_only and share.mode is ShareMode.WRITE:
            raise Invalid(f"{volume.name} cannot be written: its object store is read-only", field="shares")


def _cluster(state: State, wanted: str | None) -> str:
    known = sorted({node.cluster for node in state.snapshot.nodes.values()} | set(state.observed))
    if wanted is None:
        if len(known) > 1:
            raise Invalid(f"say which cluster: {', '.join(known)}", field="cluster", known=known)
        return known[0] if known else "local"
    if wanted not in known:
        raise Invalid(
            f"there is no cluster {wanted!r}; there are: {', '.join(known) or 'none'}", field="cluster", known=known
        )
    return wanted


def _own(work: Work, caller: Caller, ref: str) -> VolumeRecord:
    """A volume that the caller may change: one's own, or any by an operator."""
    volume = find_volume(work.tx, caller, ref)
    if volume.owner != caller.name and not caller.is_operator:
        raise Forbidden(f"volume {volume.name} is {volume.owner}'s: only its owner changes it")
    require(caller, Function.VOLUMES)
    return volume


def _meant(tx: Transaction, caller: Caller, ref: str) -> list[VolumeRecord]:
    if VOLUME_ID.fullmatch(ref):
        volume = tx.volumes.get(ref)
        found = [volume] if volume is not None else []
    else:
        owner, slash, name = ref.rpartition("/")
        found = [volume for volume in tx.volumes.named(name) if not slash or volume.owner == owner]
    circle = Circle(tx, caller)
    return [volume for volume in found if circle.sees(volume.owner, volume.shared)]


def _owner_text(job: Job, volume: VolumeRecord) -> str:
    return f"{job.id} ({job.name})" + (f" of {job.user}" if job.user != volume.owner else "")


def _fullness(volume: VolumeRecord) -> str:
    if volume.is_full:
        return "full"
    part = (volume.used_bytes or 0) / volume.size_bytes if volume.size_bytes else 0.0
    return "nearly-full" if part >= NEARLY_FULL else ""


def _detail(volume: VolumeRecord) -> dict[str, object]:
    detail: dict[str, object] = {"name": volume.name, "type": volume.type.value, "cluster": volume.cluster}
    if volume.object_store is not None:
        return {**detail, "object_store": volume.object_store, "prefix": volume.prefix}
    return {**detail, "size_bytes": volume.size_bytes}
