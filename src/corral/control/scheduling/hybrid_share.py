"""The share of each pool that the strategy `hybrid` reserves by itself.

For each pool and GPU model one permanent reservation holds the share that no other permanent reservation uses. It is
lent to preemptible jobs. A reservation of an operator may take its GPUs, and GPUs of it change pools freely; afterwards
`keep_shares` restores its size. GPUs under jobs that cannot be preempted join it when they are free.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.records import ReservationRecord
from corral.core.scheduling.reservations.gpu_selection import Conflicts, choose_gpus, conflicts_by_gpu, gpus_of
from corral.core.scheduling.reservations.reservation import SHARE_PREFIX, Reservation
from corral.core.scheduling.reservations.windows import in_force
from corral.core.snapshot.changes import DropReservation, PutReservation
from corral.core.snapshot.installation import Strategy

NOTE = "the part that allocation.reserved_ratio reserves under the strategy hybrid"


def keep_shares(work: Work) -> None:
    """Create, resize and delete the reservations of the shares, so that each has its size."""
    wanted = _wanted(work)
    known = {
        name: reservation for name, reservation in work.state.snapshot.reservations.items() if reservation.is_share
    }
    for name in sorted(known.keys() - wanted.keys()):
        work.tx.reservations.delete(name)
        work.change(DropReservation(name=name))
        work.record(SYSTEM, "reservation.deleted", name, detail={"pool": known[name].pool})
    for name, record in wanted.items():
        before = known.get(name)
        if before == record.reservation:
            continue
        work.tx.reservations.save(record)
        work.change(PutReservation(reservation=record.reservation))
        detail = {"pool": record.reservation.pool, "gpus": list(record.reservation.gpus)}
        work.record(SYSTEM, "reservation.created" if before is None else "reservation.edited", name, detail=detail)


def _wanted(work: Work) -> dict[str, ReservationRecord]:
    """The reservations of the shares by name, with the GPUs that they should have."""
    share, snapshot = work.state.policies.hybrid_share, work.state.snapshot
    if share is None or snapshot.allocation.strategy is not Strategy.HYBRID:
        return {}
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for slot in snapshot.fleet.slots:
        for gpu in slot.node.gpus:
            sizes[gpu.pool, gpu.model] += 1
    found = {}
    for (pool, model), total in sorted(sizes.items()):
        name = SHARE_PREFIX + re.sub(r"[^a-z0-9]+", "-", f"{pool}-{model}".lower()).strip("-")
        record = work.tx.reservations.get(name) or ReservationRecord(
            reservation=Reservation(name=name, pool=pool, gpus=(), since=work.now),
            model=model,
            note=NOTE,
            created_by=SYSTEM.name,
            created_at=work.now,
        )
        gpus = _gpus(work, record.reservation, model, total)
        if gpus:
            reservation = replace(record.reservation, users=share.users, groups=share.groups, gpus=gpus)
            found[name] = replace(record, reservation=reservation)
    return found


def _gpus(work: Work, share: Reservation, model: str, total: int) -> tuple[str, ...]:
    """The GPUs of the share: those that it has already, then free ones on few nodes."""
    snapshot = work.state.snapshot
    mine = {gpu.id for _, gpu in gpus_of(snapshot, share.pool, model)}
    of_operators = [reservation for reservation in in_force(snapshot, work.now) if not reservation.is_share]
    others = {gpu for reservation in of_operators for gpu in reservation.gpus}
    # A ratio such as 0.3 is not exact: 30 % of 10 GPUs are 3.
    size = int(snapshot.allocation.reserved_ratio * total + 1e-9)
    standing = {
        gpu for reservation in of_operators if reservation.until is None for gpu in reservation.gpus if gpu in mine
    }
    kept = [gpu for gpu in share.gpus if gpu in mine and gpu not in others]
    taken = {gpu: found for gpu, found in conflicts_by_gpu(snapshot, share, work.now).items() if gpu not in kept}
    taken.update(dict.fromkeys(others, Conflicts()))
    possible = sum(gpu not in taken for gpu in mine)
    for count in range(min(possible, size - len(standing)), 0, -1):
        found = choose_gpus(snapshot, share.pool, count, models=[model], taken=taken, keep=kept)
        if found is not None:
            return found[1]
    return ()
