"""Chooses the GPUs of a reservation: the named ones, or a number of them; or explains with numbers why there are too
few."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from corral.control.errors import InUse, Invalid
from corral.control.live.unit_of_work import Work
from corral.control.records import ReservationRecord
from corral.core.counts import counted
from corral.core.scheduling.reservations.gpu_selection import Conflicts, choose_gpus, conflicts_by_gpu, gpus_of
from corral.core.scheduling.reservations.reservation import Reservation

#: how many things a refusal names
NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservationDraft:
    """The requested values of a reservation. None keeps the value, or lets corral choose it."""

    #: so many GPUs, or exactly these
    count: int | None = None
    gpu_ids: tuple[str, ...] | None = None
    model: str | None = None
    users: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    since: float | None = None
    #: whether `until` counts; None as a time means: standing
    sets_until: bool = False
    until: float | None = None
    lends: bool | None = None
    note: str | None = None

    @property
    def moves(self) -> bool:
        """Whether it changes which GPUs are reserved, or when."""
        return self.sets_until or any(value is not None for value in (self.count, self.gpu_ids, self.model, self.since))


def chosen_gpus(work: Work, record: ReservationRecord, draft: ReservationDraft) -> tuple[str, tuple[str, ...]]:
    """Returns the model and the GPUs, named or chosen; refuses with the jobs and reservations in conflict."""
    snapshot, wanted = work.state.snapshot, record.reservation
    taken = conflicts_by_gpu(snapshot, wanted, work.now)
    kept = {*wanted.gpus} if not (draft.sets_until or draft.since is not None) else set()
    # What is on GPUs that it has already was there before it, or has been lent: only new ones are looked at.
    taken = {gpu: found for gpu, found in taken.items() if gpu not in kept or found.reservations}
    if draft.gpu_ids is not None:
        return _named(work, wanted.pool, draft, taken)
    count = draft.count if draft.count is not None else len(wanted.gpus)
    models = {gpu.model for _, gpu in gpus_of(snapshot, wanted.pool)}
    model = draft.model or record.model or None
    if model is not None and model not in models:
        raise Invalid(
            f"pool {wanted.pool} has no {model} GPU; it has: {', '.join(sorted(models)) or 'none'}",
            field="model",
            known=sorted(models),
        )
    models = {model} if model is not None else models
    if count == len(wanted.gpus) and not taken.keys() & {*wanted.gpus} and model == record.model:
        return record.model, wanted.gpus
    found = choose_gpus(snapshot, wanted.pool, count, models=models, taken=taken, keep=wanted.gpus)
    if found is None:
        raise _too_few(work, wanted, count, models, taken)
    return found


def _named(work: Work, pool: str, draft: ReservationDraft, taken: dict[str, Conflicts]) -> tuple[str, tuple[str, ...]]:
    assert draft.gpu_ids is not None
    gpus = tuple(dict.fromkeys(draft.gpu_ids))
    known = {gpu.id: gpu for _, gpu in gpus_of(work.state.snapshot, pool)}
    missing = [gpu for gpu in gpus if gpu not in known]
    if missing:
        raise Invalid(f"pool {pool} has no GPU {name_list(missing)}", field="gpu_ids", gpus=missing[:NAMED])
    leaving = [gpu for gpu in gpus if known[gpu].next_pool]
    if leaving:
        raise InUse(
            f"GPU {name_list(leaving)} leaves pool {pool} when its job has ended", field="gpu_ids", gpus=leaving[:NAMED]
        )
    if not gpus:
        raise Invalid("a reservation has at least one GPU", field="gpu_ids")
    models = sorted({known[gpu].model for gpu in gpus})
    if len(models) > 1 or (draft.model is not None and models != [draft.model]):
        raise Invalid(
            f"the GPUs of a reservation are of one model, these are: {', '.join(models)}",
            field="gpu_ids",
            models=models,
        )
    if draft.count is not None and draft.count != len(gpus):
        asked = counted(draft.count, "GPU is", "GPUs are")
        raise Invalid(f"{asked} asked for, and {counted(len(gpus), 'is', 'are')} named", field="gpus")
    busy = {gpu: taken[gpu] for gpu in gpus if gpu in taken}
    if busy:
        raise InUse(f"not free in that window: {_obstacles(busy)}", field="gpu_ids", **_numbers(busy))
    return models[0], gpus


def _too_few(
    work: Work, wanted: Reservation, count: int, models: Collection[str], taken: dict[str, Conflicts]
) -> InUse:
    per_model = {
        model: [gpu.id for _, gpu in gpus_of(work.state.snapshot, wanted.pool, model)] for model in sorted(models)
    }
    models = ", ".join(
        f"{sum(gpu not in taken for gpu in gpus)} of {len(gpus)} {model}" for model, gpus in per_model.items()
    )
    mine = {gpu for gpus in per_model.values() for gpu in gpus}
    busy = {gpu: found for gpu, found in taken.items() if gpu in mine}
    detail = f"asked for {counted(count, 'GPU')} of one model; free of others in that window: {models or 'none'}"
    most = max((sum(gpu not in taken for gpu in gpus) for gpus in per_model.values()), default=0)
    if busy:
        detail += f". In the way: {_obstacles(busy)}"
    elif most >= count:
        detail += ", and some of them are suspect or failed"
    return InUse(detail, field="gpus", asked=count, free=most, **_numbers(busy))


def _obstacles(busy: dict[str, Conflicts]) -> str:
    """The jobs and reservations that hold GPUs, with their counts, as text."""
    counts: dict[str, int] = {}
    for found in busy.values():
        names = [*(f"reservation {name}" for name in found.reservations), *(f"job {job}" for job in found.jobs)]
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return name_list(f"{name} has {count}" for name, count in counts.items())


def _numbers(busy: dict[str, Conflicts]) -> dict[str, Any]:
    jobs = dict.fromkeys(job for found in busy.values() for job in found.jobs)
    reservations = dict.fromkeys(name for found in busy.values() for name in found.reservations)
    return {"jobs": list(jobs)[:NAMED], "reservations": list(reservations)[:NAMED], "gpus": list(busy)[:NAMED]}


def name_list(names: Iterable[str]) -> str:
    """The first five names, and how many more there are."""
    every = list(names)
    return ", ".join(every[:5]) + (f" and {len(every) - 5} more" if len(every) > 5 else "")
