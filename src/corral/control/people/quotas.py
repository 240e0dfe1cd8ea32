"""Quotas: the most that a user may hold, per job kind and per type of volume.

Setting one never touches what runs already. That a job fits its user's quota is decided in `admission`; that a volume
does, where volumes are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.control.errors import Forbidden, Invalid, NotFound
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Transaction
from corral.control.records import QuotaRecord, VolumeQuotaRecord
from corral.control.storage.mounts import local_held
from corral.control.storage.volumes import held_of
from corral.core.fleet.resources import Amount
from corral.core.model import JobKind
from corral.core.people.quota import Quota
from corral.core.snapshot.changes import PutQuota
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
    """What a user may hold with jobs of one kind, and what unfinished jobs of that kind hold or ask for."""

    quota: Quota
    held: Amount


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
    """What a user may hold from now on, for the kinds and types that are named."""
    _only_operators(caller)
    _check_users(work.tx, [name])
    _put(work, name, quotas, volumes or {})
    _record(work, caller, name, quotas, volumes or {})


def edit_quotas(work: Work, caller: Caller, names: Sequence[str] | None, edit: QuotaEdit) -> list[str]:
    """The same change for these users, or for everybody: for all of them or for none. The users it was made for."""
    _only_operators(caller)
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
    """What every new user gets; nothing, unless the settings say otherwise."""
    _put(work, name, work.state.policies.default_quota, work.state.policies.default_volume_bytes)


def volume_quotas_of(tx: Transaction) -> dict[tuple[str, VolumeType], VolumeUsage]:
    """Of everybody who has volumes or a limit, as far as the store knows: what jobs hold of their nodes' disks is not
    in it."""
    limits = {(record.user, record.type): record.max_bytes for record in tx.people.volume_quotas()}
    held = held_of(tx)
    return {key: VolumeUsage(max_bytes=limits.get(key), held_bytes=held.get(key, 0)) for key in {**limits, **held}}


def usage_of(
    state: State, users: Sequence[str], volume_quotas: Mapping[tuple[str, VolumeType], VolumeUsage]
) -> list[QuotaUsage]:
    """Every kind and type of these users, also those without a limit."""
    snapshot = state.snapshot
    return [
        QuotaUsage(
            user=user,
            kinds={
                kind: KindUsage(
                    quota=snapshot.quotas.get((user, kind), Quota()), held=snapshot.active.of_kind(user, kind)
                )
                for kind in JobKind
            },
            volumes={kind: _volume_usage(state, user, kind, volume_quotas) for kind in VolumeType},
        )
        for user in users
    ]


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
        words = ", ".join(repr(name) for name in missing)
        raise NotFound(f"there is no user {words}", field="user", missing=missing)


def _only_operators(caller: Caller) -> None:
    if not caller.is_operator:
        raise Forbidden("only operators set quotas")
