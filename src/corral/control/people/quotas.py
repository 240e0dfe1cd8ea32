"""Quotas: the most that a user may hold, per job kind and per type of volume.

Setting one never touches what runs already. That a job fits its user's quota is decided in `admission`; that a volume
does, where volumes are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.control.errors import Invalid, NotFound
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import QuotaRecord, VolumeQuotaRecord
from corral.control.storage.mounts import local_held
from corral.control.storage.volumes import held_of
from corral.core.fleet.resources import Amount, at_least
from corral.core.model import JobKind
from corral.core.people.quota import Quota
from corral.core.snapshot.changes import PutQuota
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.held_resources import Usage
from corral.core.storage.volumes import VolumeType

#: The fields of a quota that an edit changes; one that is left out stays as it is.
QuotaChanges = Mapping[str, int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaEdit:
    """A change of quotas, to be made for many users alike. What is left out stays as it is."""

    kinds: Mapping[JobKind, QuotaChanges] = field(default_factory=dict)
    volumes: Mapping[VolumeType, int | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class KindUsage:
    """The quota and use of one kind of jobs. Held and asked resources count against the quota together."""

    quota: Quota
    #: by jobs that have an allocation
    held: Amount
    #: by waiting jobs
    asked: Amount


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuUse:
    held_milli: int
    #: requested by waiting jobs
    asked_milli: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeUsage:
    max_bytes: int | None
    held_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaUsage:
    """One user's quotas beside what counts against them."""

    user: str
    kinds: Mapping[JobKind, KindUsage]
    volumes: Mapping[VolumeType, VolumeUsage]


def set_quota(
    work: Work,
    caller: Caller,
    name: str,
    quotas: Mapping[JobKind, Quota],
    volumes: Mapping[VolumeType, int | None] | None = None,
) -> None:
    """Sets a user's quotas for the named kinds and volume types."""
    require_operator(caller, "set quotas")
    _check_users(work.tx, [name])
    _put(work, name, quotas, volumes or {})
    _record(work, caller, name, quotas, volumes or {})


def edit_quotas(work: Work, caller: Caller, names: Sequence[str] | None, edit: QuotaEdit) -> list[str]:
    """Apply the same change for these users, or for all users; for all of them or for none. Returns the users."""
    require_operator(caller, "set quotas")
    if not edit.kinds and not edit.volumes:
        raise Invalid("nothing to change: name a job kind or volumes", field="quota")
    if names is None:
        users = [user.name for user in work.tx.people.users()]
    else:
        users = list(dict.fromkeys(names))
        _check_users(work.tx, users)
    given = work.state.snapshot.quotas
    for user in users:
        kinds = {kind: replace(given.get((user, kind), Quota()), **changes) for kind, changes in edit.kinds.items()}
        _put(work, user, kinds, edit.volumes)
        _record(work, caller, user, edit.kinds, edit.volumes)
    return users


def give_default(work: Work, name: str) -> None:
    """Gives a new user the default quotas of the settings; without those, none."""
    _put(work, name, work.state.policies.default_quota, work.state.policies.default_volume_bytes)


def volume_quotas_of(tx: Transaction) -> dict[tuple[str, VolumeType], VolumeUsage]:
    """The volume quotas and use of each user who has volumes or a limit. Local disks of nodes are not included: the
    store does not know them.
    """
    limits = {(record.user, record.type): record.max_bytes for record in tx.people.volume_quotas()}
    held = held_of(tx)
    return {key: VolumeUsage(max_bytes=limits.get(key), held_bytes=held.get(key, 0)) for key in {**limits, **held}}


def usage_of(
    state: State, users: Sequence[str], volume_quotas: Mapping[tuple[str, VolumeType], VolumeUsage]
) -> list[QuotaUsage]:
    """Every kind and type of these users, also those without a limit."""
    snapshot = state.snapshot
    least = least_held(snapshot)
    return [
        QuotaUsage(
            user=user,
            kinds={
                kind: KindUsage(
                    quota=snapshot.quotas.get((user, kind), Quota()),
                    held=snapshot.held.of_kind(user, kind),
                    asked=snapshot.active.of_kind(user, kind) - least.of_kind(user, kind),
                )
                for kind in JobKind
            },
            volumes={kind: _volume_usage(state, user, kind, volume_quotas) for kind in VolumeType},
        )
        for user in users
    ]


def gpus_of_each(state: State, groups: Sequence[Sequence[str]]) -> list[GpuUse]:
    """GPUs of each list of users. A job that several quotas count is counted once."""
    held, active, least = state.snapshot.held.by_user, state.snapshot.active.by_user, least_held(state.snapshot).by_user
    return [
        GpuUse(
            held_milli=sum(held.get(user, 0) for user in users),
            asked_milli=sum(active.get(user, 0) - least.get(user, 0) for user in users),
        )
        for users in groups
    ]


def least_held(snapshot: ClusterSnapshot) -> Usage:
    """The resources that jobs hold, elastic ones counted at their minimum. Waiting jobs request the rest
    of `active`.
    """
    least = snapshot.held.copy()
    for job in (snapshot.jobs[job_id] for job_id in snapshot.elastic):
        least.remove(job)
        least.add(at_least(job))
    return least


def _volume_usage(
    state: State, user: str, kind: VolumeType, known: Mapping[tuple[str, VolumeType], VolumeUsage]
) -> VolumeUsage:
    usage = known.get((user, kind), VolumeUsage(max_bytes=None))
    return replace(usage, held_bytes=local_held(state, user)) if kind is VolumeType.LOCAL else usage


def _put(work: Work, name: str, kinds: Mapping[JobKind, Quota], volumes: Mapping[VolumeType, int | None]) -> None:
    for kind, quota in kinds.items():
        work.tx.people.save_quota(QuotaRecord(user=name, kind=kind, quota=quota))
        work.change(PutQuota(user=name, kind=kind, quota=quota))
    for volume_type, max_bytes in volumes.items():
        work.tx.people.save_volume_quota(VolumeQuotaRecord(user=name, type=volume_type, max_bytes=max_bytes))


def _record(
    work: Work, caller: Caller, name: str, kinds: Mapping[JobKind, object], volumes: Mapping[VolumeType, object]
) -> None:
    detail = {"kinds": [str(kind) for kind in kinds], "volumes": [str(item) for item in volumes]}
    work.record(caller, "user.quota-set", name, owner=name, detail=detail)


def _check_users(tx: Transaction, names: Sequence[str]) -> None:
    known = {user.name for user in tx.people.users()}
    missing = [name for name in names if name not in known]
    if missing:
        names = ", ".join(repr(name) for name in missing)
        raise NotFound(f"there is no user {names}", field="user", missing=missing)
