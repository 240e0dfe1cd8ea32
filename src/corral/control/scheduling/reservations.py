"""Reservations by operators: GPUs reserved for users and groups, for a window of time or permanently.

A reservation is refused if it cannot be kept: while another reservation has the same GPUs at the same time, or a job
holds one that cannot be preempted. An ended reservation leaves the snapshot, and is listed for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from corral.control.errors import InUse, Invalid, NotFound, OverLimit, Taken, WrongState
from corral.control.jobs.admission import check_queue_name
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import ReservationRecord
from corral.control.scheduling.hybrid_share import keep_shares
from corral.control.scheduling.reserved_gpus import NAMED, ReservationDraft, chosen_gpus, name_list
from corral.core.counts import counted
from corral.core.scheduling.reservations.gpu_selection import most_standing, standing_gpus
from corral.core.scheduling.reservations.reservation import SHARE_PREFIX, Reservation
from corral.core.scheduling.reservations.windows import in_force, is_active, owns, window_of
from corral.core.snapshot.changes import DropReservation, PutReservation
from corral.core.snapshot.installation import Strategy

#: how long one that is over is listed
LISTED_SECONDS = 30 * 86400.0


class ReservationState(StrEnum):
    UPCOMING = "upcoming"
    ACTIVE = "active"
    STANDING = "standing"
    OVER = "over"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationView:
    """A reservation with what is in use of it."""

    record: ReservationRecord
    state: ReservationState
    #: whether it counts: a standing one does not where nothing is reserved standing
    in_force: bool
    #: the reserved GPUs by node; those that are missing at the moment are under ""
    nodes: dict[str, tuple[str, ...]]
    used_by_owners: int
    lent: int


def create(work: Work, caller: Caller, name: str, pool: str, draft: ReservationDraft) -> ReservationRecord:
    require_operator(caller, "manage reservations")
    check_queue_name(name)
    known = work.tx.reservations.get(name)
    if known is not None and state_of(known.reservation, work.now) is not ReservationState.OVER:
        raise Taken(f"there is a reservation {name!r} already", field="name", name=name)
    if name.startswith(SHARE_PREFIX):
        raise Invalid(f"names that begin with {SHARE_PREFIX} are for the strategy hybrid", field="name", name=name)
    _check_pool(work, pool)
    if draft.count is None and draft.gpu_ids is None:
        raise Invalid("a reservation needs a number of GPUs, or a list of them", field="gpus")
    empty = Reservation(name=name, pool=pool, gpus=(), since=work.now)
    wanted = ReservationRecord(reservation=empty, created_by=caller.name, created_at=work.now)
    record = _settled(work, wanted, draft)
    _save(work, record)
    work.record(caller, "reservation.created", name, detail=_detail(record))
    keep_shares(work)
    return record


def edit(work: Work, caller: Caller, name: str, draft: ReservationDraft) -> ReservationRecord:
    """Change some of it. What runs on GPUs that it has already stays."""
    require_operator(caller, "manage reservations")
    before = _own(work, name)
    if state_of(before.reservation, work.now) is ReservationState.OVER:
        raise WrongState(f"reservation {name} is over: create another one", state="over")
    record = _settled(work, before, draft)
    if record != before:
        _save(work, record)
        work.record(caller, "reservation.edited", name, detail=_detail(record))
        keep_shares(work)
    return record


def delete(work: Work, caller: Caller, name: str) -> None:
    """Deletes a reservation; jobs on its GPUs continue."""
    require_operator(caller, "manage reservations")
    record = _own(work, name)
    _drop(work, name)
    work.record(caller, "reservation.deleted", name, detail=_detail(record))
    keep_shares(work)


def tidy(work: Work) -> int:
    """Removes expired reservations from the snapshot and, later, from the store; returns how many were deleted."""
    for record in work.tx.reservations.all():
        if not record.is_over and window_of(record.reservation)[1] <= work.now:
            work.tx.reservations.save(replace(record, is_over=True))
            work.change(DropReservation(name=record.name), needs_cycle=False)
    keep_shares(work)
    return work.tx.reservations.prune(work.now - LISTED_SECONDS)


# ------------------------------------------------------------------------------------------------ what else changes


def check_gpus_free(state: State, gpus: Collection[str], now: float, *, field: str) -> None:
    """Reserved GPUs do not leave their pool."""
    holding = [
        reservation
        for reservation in in_force(state.snapshot, now)
        if not reservation.is_share and any(gpu in gpus for gpu in reservation.gpus)
    ]
    if holding:
        text = name_list(
            f"{reservation.name} has {sum(gpu in gpus for gpu in reservation.gpus)} of them" for reservation in holding
        )
        raise InUse(
            f"reserved GPUs cannot be moved: {text}",
            field=field,
            reservations=[reservation.name for reservation in holding[:NAMED]],
        )


def check_pool_free(state: State, pool: str, now: float) -> None:
    holding = [
        reservation.name
        for reservation in in_force(state.snapshot, now)
        if reservation.pool == pool and not reservation.is_share
    ]
    if holding:
        raise InUse(f"pool {pool} has reservations: {name_list(holding)}", field="name", reservations=holding[:NAMED])


def check_group_free(tx: Transaction, group: str, now: float) -> None:
    named = [record.name for record in _not_over(tx, now) if group in record.groups]
    if named:
        raise InUse(f"group {group} is named by reservations: {name_list(named)}", field="name", reservations=named)


def check_user_free(tx: Transaction, user: str, now: float) -> None:
    """Refuse if a reservation would have no owner left; one with other owners stays without the user."""
    alone = [record.name for record in _not_over(tx, now) if record.users == (user,) and not record.groups]
    if alone:
        raise InUse(
            f"user {user} alone owns reservations: {name_list(alone)}; delete them, or give them to others",
            field="name",
            reservations=alone,
        )


def forget_user(work: Work, user: str) -> None:
    """Removes a deleted user from reservations; those with other owners are kept. Call `check_user_free` first."""
    for record in work.tx.reservations.all():
        reservation = record.reservation
        if user in reservation.users and not record.is_over:
            changed = replace(reservation, users=tuple(name for name in reservation.users if name != user))
            _change(work, replace(record, reservation=changed), {"deleted_user": user})


def forget_gpus(work: Work, gpus: Collection[str]) -> None:
    """Removes deleted GPUs from all reservations. A reservation without GPUs is deleted."""
    for record in work.tx.reservations.all():
        reservation = record.reservation
        left = tuple(gpu for gpu in reservation.gpus if gpu not in gpus)
        if left == reservation.gpus or record.is_over:
            continue
        lost = {"lost_gpus": [gpu for gpu in reservation.gpus if gpu in gpus]}
        if left:
            _change(work, replace(record, reservation=replace(reservation, gpus=left)), lost)
        else:
            _drop(work, reservation.name)
            work.record(SYSTEM, "reservation.deleted", reservation.name, detail={**_detail(record), **lost})


# ------------------------------------------------------------------------------------------------ looking


def existing(tx: Transaction, name: str) -> ReservationRecord:
    record = tx.reservations.get(name)
    if record is None:
        raise NotFound(f"there is no reservation {name!r}", field="reservation")
    return record


def state_of(reservation: Reservation, now: float) -> ReservationState:
    since, until = window_of(reservation)
    if until <= now:
        return ReservationState.OVER
    if since > now:
        return ReservationState.UPCOMING
    return ReservationState.STANDING if reservation.until is None else ReservationState.ACTIVE


def listed(
    tx: Transaction, pool: str | None = None, since: float | None = None, until: float | None = None
) -> list[ReservationRecord]:
    """The reservations whose windows overlap the given time."""
    return [
        record
        for record in tx.reservations.all()
        if (pool is None or record.reservation.pool == pool)
        and (since is None or window_of(record.reservation)[1] > since)
        and (until is None or record.reservation.since < until)
    ]


def reservation_views(state: State, records: Sequence[ReservationRecord], now: float) -> list[ReservationView]:
    """The views of these reservations with the GPUs in use."""
    snapshot = state.snapshot
    holders: dict[str, list[str]] = {}
    for job in snapshot.jobs.values():
        for gpu in job.allocation.gpus if job.allocation else ():
            holders.setdefault(gpu, []).append(job.user)
    counting = {reservation.name for reservation in in_force(snapshot, now)}
    views = []
    for record in records:
        reservation = record.reservation
        nodes: dict[str, list[str]] = {}
        for gpu in reservation.gpus:
            nodes.setdefault(snapshot.fleet.gpu_home.get(gpu, ""), []).append(gpu)
        held = [gpu for gpu in reservation.gpus if gpu in holders and is_active(reservation, now)]
        owners = sum(any(owns(snapshot, reservation, user) for user in holders[gpu]) for gpu in held)
        views.append(
            ReservationView(
                record=record,
                state=state_of(reservation, now),
                in_force=reservation.name in counting,
                nodes={node: tuple(gpus) for node, gpus in nodes.items()},
                used_by_owners=owners,
                lent=len(held) - owners,
            )
        )
    return views


# ------------------------------------------------------------------------------------------------ inside


def _own(work: Work, name: str) -> ReservationRecord:
    """A reservation that operators may change."""
    record = existing(work.tx, name)
    if record.reservation.is_share:
        raise WrongState(
            f"reservation {name} follows the configuration: change allocation.reserved_ratio, allocation.reserved_for"
            " or allocation.reserve_share",
            state="automatic",
        )
    return record


def _settled(work: Work, before: ReservationRecord, draft: ReservationDraft) -> ReservationRecord:
    """The reservation as it is wanted, if it can be kept."""
    was = before.reservation
    wanted = replace(
        was,
        users=was.users if draft.users is None else _known_users(work.tx, draft.users),
        groups=was.groups if draft.groups is None else _known_groups(work.tx, draft.groups),
        since=was.since if draft.since is None else max(draft.since, work.now),
        until=draft.until if draft.sets_until else was.until,
        lends=was.lends if draft.lends is None else draft.lends,
    )
    if not wanted.users and not wanted.groups:
        raise Invalid("say for which users or groups", field="users")
    record = replace(before, note=before.note if draft.note is None else draft.note, reservation=wanted)
    if not draft.moves:
        return record
    _check_window(wanted, work.now)
    model, gpus = chosen_gpus(work, record, draft)
    _check_strategy(work, wanted, len(gpus))
    return replace(record, model=model, reservation=replace(wanted, gpus=gpus))


def _check_window(wanted: Reservation, now: float) -> None:
    since, until = window_of(wanted)
    if until <= since:
        raise Invalid("the end is not after the beginning", field="until")
    if until <= now:
        raise Invalid(f"it would be over already, {now - until:.0f} seconds ago", field="until")


def _check_strategy(work: Work, wanted: Reservation, count: int) -> None:
    snapshot = work.state.snapshot
    if wanted.until is not None:
        return
    if snapshot.allocation.strategy is Strategy.DYNAMIC:
        raise Invalid(
            "allocation.strategy is dynamic: nothing is reserved standing; say until when it lasts",
            field="until",
            strategy="dynamic",
        )
    if snapshot.allocation.strategy is Strategy.HYBRID:
        limit = most_standing(snapshot, wanted.pool)
        held = standing_gpus(snapshot, wanted.pool, wanted.name, work.now)
        if held + count > limit:
            raise OverLimit(
                f"standing reservations may take {counted(limit, 'GPU')} of pool {wanted.pool} together"
                f" (allocation.reserved_ratio is {snapshot.allocation.reserved_ratio:g}):"
                f" asked for {count}, others have {held}",
                field="gpus",
                asked=count,
                held=held,
                limit=limit,
            )


def _save(work: Work, record: ReservationRecord) -> None:
    work.tx.reservations.save(record)
    work.change(PutReservation(reservation=record.reservation))


def _change(work: Work, record: ReservationRecord, why: dict[str, Any]) -> None:
    _save(work, record)
    work.record(SYSTEM, "reservation.edited", record.name, detail={**_detail(record), **why})


def _drop(work: Work, name: str) -> None:
    work.tx.reservations.delete(name)
    work.change(DropReservation(name=name))


def _detail(record: ReservationRecord) -> dict[str, Any]:
    reservation = record.reservation
    return {
        "pool": reservation.pool,
        "gpus": list(reservation.gpus),
        "users": list(reservation.users),
        "groups": list(reservation.groups),
        "since": reservation.since,
        "until": reservation.until,
        "lends": reservation.lends,
    }


def _check_pool(work: Work, pool: str) -> None:
    known = [item.name for item in work.tx.fleet.pools()]
    if pool not in known:
        raise Invalid(f"there is no pool {pool!r}; there are: {', '.join(known)}", field="pool", known=known)


def _known_users(tx: Transaction, names: Sequence[str]) -> tuple[str, ...]:
    missing = [name for name in names if tx.people.user(name) is None]
    if missing:
        raise Invalid(f"there is no user {name_list(missing)}", field="users", users=missing[:NAMED])
    return tuple(dict.fromkeys(names))


def _known_groups(tx: Transaction, names: Sequence[str]) -> tuple[str, ...]:
    known = {group.name for group in tx.people.groups()}
    missing = [name for name in names if name not in known]
    if missing:
        raise Invalid(f"there is no group {name_list(missing)}", field="groups", groups=missing[:NAMED])
    return tuple(dict.fromkeys(names))


def _not_over(tx: Transaction, now: float) -> list[Reservation]:
    """Reservations of operators that are not over."""
    found = [record.reservation for record in tx.reservations.all()]
    return [reservation for reservation in found if window_of(reservation)[1] > now and not reservation.is_share]
