"""The resource panel: per job kind and GPU model what runs, what waits, and what there is; and the history of scores.

The total of a kind is what jobs of that kind can have: GPUs of the pools that have a queue for it. For one user these
are the pools in the user's reach.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from corral.control.fleet.live_jobs import Sums
from corral.control.live.state import State
from corral.control.records import ScorePoint
from corral.control.scheduling import queue_choice
from corral.core.model import WHOLE, JobKind
from corral.core.people.scores import Score, score_at

#: A pool and a GPU model.
Place = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelRow:
    """Jobs of one kind and GPU model, and the GPUs behind them."""

    kind: JobKind
    #: "" in the sum over all models, where jobs without GPUs count too
    model: str
    running: int = 0
    queued: int = 0
    #: held by what runs
    occupied: float = 0.0
    #: what jobs of this kind can have
    total: float = 0.0
    #: the part on which a job could start now; for one user with the GPUs that are reserved for the user
    free: float = 0.0
    #: asked for by what waits
    gap: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRow:
    """Jobs of all kinds that use one GPU model, and the GPUs of that model."""

    model: str
    running: int = 0
    queued: int = 0
    occupied: float = 0.0
    total: float = 0.0
    free: float = 0.0
    gap: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    rows: tuple[PanelRow, ...]
    #: one row per kind, over all models
    kinds: tuple[PanelRow, ...]
    #: one row per model, over all kinds: a GPU counts once
    models: tuple[ModelRow, ...] = ()


@dataclass(slots=True)
class _Supply:
    """GPUs by pool and model."""

    total: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    free: dict[Place, int] = field(default_factory=lambda: defaultdict(int))


def panel(
    state: State,
    now: float,
    *,
    user: str | None = None,
    group: str | None = None,
    kind: JobKind | None = None,
    model: str | None = None,
) -> Panel:
    """The panel of one user, one group, or all users; for one kind or model, or for all."""
    users = _users(state, user, group)
    supply = _supply(state, now, user)
    models = sorted({place[1] for place in supply.total})
    counts = defaultdict(Sums, state.job_sums().sums(users, models))
    kinds = [kind] if kind is not None else list(JobKind)
    rows = []
    in_reach: set[str] = set()
    for kind in kinds:
        pools = _pools(state, kind, users)
        in_reach |= pools
        # A model counts for a kind that can have it, or that has jobs of it from when it could.
        shown = {place[1] for place in supply.total if place[0] in pools} | {m for k, m in counts if k is kind and m}
        rows += [_row(kind, name, counts[kind, name], supply, pools) for name in sorted(shown)]
    rows = [row for row in rows if model is None or row.model == model]
    sums = []
    for kind in kinds:
        without_gpus = counts[kind, ""] if model is None else Sums()
        mine = [row for row in rows if row.kind is kind]
        sums.append(
            PanelRow(
                kind=kind,
                model="",
                running=sum(row.running for row in mine) + without_gpus.running,
                queued=sum(row.queued for row in mine) + without_gpus.queued,
                occupied=sum(row.occupied for row in mine),
                total=sum(row.total for row in mine),
                free=sum(row.free for row in mine),
                gap=sum(row.gap for row in mine),
            )
        )
    return Panel(
        rows=tuple(sorted(rows, key=lambda row: (row.kind, row.model))),
        kinds=tuple(sums),
        models=tuple(_model_row(name, rows, supply, in_reach) for name in sorted({row.model for row in rows})),
    )


def score_history(
    points: Sequence[ScorePoint], since: float, now: float, time_constant: float, count: int
) -> list[ScorePoint]:
    """The score at up to `count` moments from `since` to now, exact at each: at every change if these are few enough,
    and at even distances between.

    `points` are oldest first, and the first may be from before.
    """
    begin = max(since, points[0].at) if points else now
    if not points or begin > now:
        return []
    changes = sorted({point.at for point in points if begin <= point.at <= now} | {begin, now})
    moments = set(changes) if len(changes) <= count else set()
    even = count - len(moments)
    moments |= {begin + (now - begin) * step / max(1, even - 1) for step in range(even)}
    history = []
    place = 0
    for moment in sorted(moments):
        while place + 1 < len(points) and points[place + 1].at <= moment:
            place += 1
        point = points[place]
        value = score_at(Score(value=point.value, usage=point.usage, at=point.at), moment, time_constant)
        history.append(replace(point, at=moment, value=value))
    return history


def _row(kind: JobKind, model: str, counts: Sums, supply: _Supply, pools: Iterable[str]) -> PanelRow:
    return PanelRow(
        kind=kind,
        model=model,
        running=counts.running,
        queued=counts.queued,
        occupied=counts.running_milli / WHOLE,
        total=sum(supply.total.get((pool, model), 0) for pool in pools),
        free=sum(supply.free.get((pool, model), 0) for pool in pools),
        gap=counts.queued_milli / WHOLE,
    )


def _model_row(model: str, rows: Iterable[PanelRow], supply: _Supply, pools: Iterable[str]) -> ModelRow:
    mine = [row for row in rows if row.model == model]
    return ModelRow(
        model=model,
        running=sum(row.running for row in mine),
        queued=sum(row.queued for row in mine),
        occupied=sum(row.occupied for row in mine),
        total=sum(supply.total.get((pool, model), 0) for pool in pools),
        free=sum(supply.free.get((pool, model), 0) for pool in pools),
        gap=sum(row.gap for row in mine),
    )


def _users(state: State, user: str | None, group: str | None) -> set[str] | None:
    """The users whose jobs count; None means all."""
    if group is not None:
        return {name for name, member in state.snapshot.memberships.items() if member.group == group}
    return None if user is None else {user}


def _supply(state: State, now: float, user: str | None) -> _Supply:
    """The GPUs in total and free. If a user is given, GPUs reserved for that user count as free."""
    supply, fleet = _Supply(), state.fleet(now)
    for place, counts in fleet.by_pool().items():
        supply.total[place] = counts.gpus
        supply.free[place] = counts.free
    for _, pool, model in fleet.freed_for(user, now) if user is not None else ():
        supply.free[pool, model] += 1
    return supply


def _pools(state: State, kind: JobKind, users: set[str] | None) -> set[str]:
    """The pools where a job of this kind can run."""
    queues = (
        state.snapshot.queues.values()
        if users is None
        else [queue for user in users for queue in queue_choice.reach(state.snapshot, user)]
    )
    return {queue.pool for queue in queues if not queue.kinds or kind in queue.kinds}
