"""Maintenance windows: nodes are drained before a window, are empty in it, and take jobs again after it.

A window is a drain that begins and ends by itself (`drains`). Some time before the window its nodes stop to take new
jobs; jobs that are left when it begins are asked to save and continue elsewhere. A repeated window keeps its time of
day in the server's time zone. A node that an operator has withheld is emptied too, and stays withheld afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from corral.control.errors import Invalid, NotFound, Taken, WrongState
from corral.control.fleet import node_actions
from corral.control.fleet.draining import drains
from corral.control.fleet.draining.drain_records import Drain
from corral.control.jobs.admission import check_queue_name
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.records import MaintenanceRecord
from corral.core.model import NodeState

DAY = 86400.0
#: Windows together.
MOST_WINDOWS = 1000
MOST_DRAIN_SECONDS = 30 * DAY
#: Names in a message.
NAMED = 5
#: how long one that is over is listed
LISTED_SECONDS = 30 * DAY


class MaintenanceState(StrEnum):
    UPCOMING = "upcoming"
    #: its nodes take no new jobs any more
    DRAINING = "draining"
    ACTIVE = "active"
    OVER = "over"


@dataclass(frozen=True, kw_only=True, slots=True)
class MaintenanceDraft:
    """The requested values of a window; None: not given."""

    nodes: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None
    #: whether `every_days` was said: None ends the repetition
    sets_repetition: bool = False
    every_days: int | None = None
    drain_seconds: float | None = None
    note: str | None = None


def create(work: Work, caller: Caller, name: str, draft: MaintenanceDraft) -> MaintenanceRecord:
    require_operator(caller, "plan maintenance")
    check_queue_name(name)
    known = work.state.maintenance.get(name)
    if known is not None and state_of(known, work.now) is not MaintenanceState.OVER:
        raise Taken(f"there is a maintenance window {name!r} already", field="name", name=name)
    if len(work.state.maintenance) >= MOST_WINDOWS:
        raise Invalid(f"at most {MOST_WINDOWS} maintenance windows are kept", field="name", limit=MOST_WINDOWS)
    if draft.until is None:
        raise Invalid("maintenance needs an end", field="until")
    empty = MaintenanceRecord(
        name=name, nodes=(), since=work.now, until=draft.until, created_by=caller.name, created_at=work.now
    )
    record = _settled(work, empty, draft)
    _keep(work, record)
    work.record(caller, "maintenance.created", name, detail=_detail(record))
    go_on(work)
    return record


def edit(work: Work, caller: Caller, name: str, draft: MaintenanceDraft) -> MaintenanceRecord:
    """Change the given fields. A window that is under way goes on with the new settings: removed nodes return to
    use."""
    require_operator(caller, "plan maintenance")
    before = existing(work.state, name)
    if state_of(before, work.now) is MaintenanceState.OVER:
        raise WrongState(f"maintenance window {name} is over: create another window", state="over")
    record = _settled(work, before, draft)
    if record != before:
        moved = any(getattr(record, field) != getattr(before, field) for field in ("nodes", "since", "drain_seconds"))
        _keep(work, replace(record, begun=()) if moved else record)
        work.record(caller, "maintenance.edited", name, detail=_detail(record))
        go_on(work)
    return work.state.maintenance[name]


def delete(work: Work, caller: Caller, name: str) -> None:
    """Deletes a window. If it is open, its nodes return at once."""
    require_operator(caller, "plan maintenance")
    record = existing(work.state, name)
    _drop(work, name)
    work.record(caller, "maintenance.deleted", name, detail=_detail(record))
    go_on(work)


def tidy(work: Work) -> int:
    """Windows that ended long ago leave the list; how many."""
    old = [window.name for window in _all(work.state) if _is_over(window, work.now - LISTED_SECONDS)]
    for name in old:
        _drop(work, name)
    return len(old)


# ------------------------------------------------------------------------------------------------ looking


def existing(state: State, name: str) -> MaintenanceRecord:
    record = state.maintenance.get(name)
    if record is None:
        raise NotFound(f"there is no maintenance window {name!r}", field="window")
    return record


def listed(state: State) -> list[MaintenanceRecord]:
    """Sorted by name."""
    return sorted(_all(state), key=lambda record: record.name)


def state_of(record: MaintenanceRecord, now: float) -> MaintenanceState:
    if now >= record.until:
        # One that is repeated goes on to its next time within a moment.
        return MaintenanceState.OVER if record.every_days is None else MaintenanceState.UPCOMING
    if now >= record.since:
        return MaintenanceState.ACTIVE
    return MaintenanceState.DRAINING if now >= record.drains_at else MaintenanceState.UPCOMING


def busy_nodes(state: State) -> set[str]:
    """Nodes that have jobs."""
    allocations = [job.allocation for job in state.snapshot.jobs.values() if job.allocation is not None]
    return {grant.node for allocation in allocations for grant in allocation.grants}


# ------------------------------------------------------------------------------------------------ as time goes on


def is_due(state: State, now: float) -> bool:
    """Whether `go_on` would change anything."""
    return (
        any(_has_ended(window, now) or _unseen(state, window, now) for window in _all(state))
        or any(_holder(state, drain, now) != drain.window for drain in state.drains.values() if drain.window)
        or drains.is_due(state, now)
    )


def go_on(work: Work) -> None:
    """Begin and end windows whose time has come, and go on with the drains."""
    for window in _all(work.state):
        if _has_ended(window, work.now):
            _keep(work, replace(_next(window, work.now), begun=()))
            if window.begun:
                work.record(SYSTEM, "maintenance.ended", window.name, detail={"nodes": list(window.nodes)})
    for window in _all(work.state):
        unseen = _unseen(work.state, window, work.now)
        for node in unseen:
            _drain(work, window, node)
        if unseen:
            _keep(work, replace(window, begun=tuple(sorted({*window.begun, *unseen}))))
            if not window.begun:
                detail = {"nodes": list(window.nodes), "since": window.since, "until": window.until}
                work.record(SYSTEM, "maintenance.began", window.name, detail=detail)
    for drain in [drain for drain in work.state.drains.values() if drain.window]:
        holder = _holder(work.state, drain, work.now)
        if not holder:
            node_actions.uncordon(work, _operator(drain.started_by), drain.node)
        elif holder != drain.window:
            drains.hand_over(work, drain.node, holder)
    drains.go_on(work)


def _drain(work: Work, window: MaintenanceRecord, node_id: str) -> None:
    known = work.state.drains.get(node_id)
    empty_by = window.since
    if known is not None and known.window != window.name and known.empty_by is not None:
        # It must be empty for another reason, too: the earlier time counts.
        empty_by = min(empty_by, known.empty_by)
    is_ready = work.state.snapshot.nodes[node_id].withheld is NodeState.READY
    drains.drain(work, _operator(window.created_by), node_id, empty_by, window=window.name if is_ready else None)


def _operator(name: str) -> Caller:
    """In whose name the nodes are drained: who planned the window, with the right to do so then."""
    return Caller(name=name, is_operator=True)


def _all(state: State) -> list[MaintenanceRecord]:
    return list(state.maintenance.values())


def _is_open(window: MaintenanceRecord, now: float) -> bool:
    return window.drains_at <= now < window.until


def _is_over(window: MaintenanceRecord, now: float) -> bool:
    return window.every_days is None and window.until <= now


def _has_ended(window: MaintenanceRecord, now: float) -> bool:
    return window.until <= now and (window.every_days is not None or bool(window.begun))


def _unseen(state: State, window: MaintenanceRecord, now: float) -> list[str]:
    """Nodes that are still to be drained for it; nodes that are not there yet are drained when they are."""
    if not _is_open(window, now):
        return []
    seen = set(window.begun)
    return [node for node in window.nodes if node not in seen and node in state.snapshot.nodes]


def _holder(state: State, drain: Drain, now: float) -> str:
    """The window that keeps the node drained, preferably the same; "" if there is none any more."""
    present = state.maintenance.get(drain.window)
    if present is not None and _is_open(present, now) and drain.node in present.nodes:
        return present.name
    return min(
        (window.name for window in _all(state) if _is_open(window, now) and drain.node in window.nodes), default=""
    )


def _next(window: MaintenanceRecord, now: float) -> MaintenanceRecord:
    """The window at its first occurrence that is not over; unchanged if it is not repeated."""
    if window.every_days is None:
        return window
    for since, until in _occurrences(window, now):
        if until > now:
            return replace(window, since=since, until=until)
    raise AssertionError


def _occurrences(window: MaintenanceRecord, now: float) -> Iterator[tuple[float, float]]:
    """Yields the occurrences at the same time of the day, from one on that is over by now, if there is one; a day of 23
    or 25 hours does not change their lengths.
    """
    assert window.every_days is not None
    # One that began centuries ago must not be counted day by day.
    passed = max(0, int((now - window.until) // (window.every_days * DAY)) - 1)
    begin = datetime.fromtimestamp(window.since) + timedelta(days=passed * window.every_days)
    while True:
        yield begin.timestamp(), begin.timestamp() + (window.until - window.since)
        begin += timedelta(days=window.every_days)


# ------------------------------------------------------------------------------------------------ inside


def _settled(work: Work, before: MaintenanceRecord, draft: MaintenanceDraft) -> MaintenanceRecord:
    wanted = replace(
        before,
        nodes=before.nodes if draft.nodes is None else tuple(sorted(set(draft.nodes))),
        since=before.since if draft.since is None else draft.since,
        until=before.until if draft.until is None else draft.until,
        every_days=draft.every_days if draft.sets_repetition else before.every_days,
        drain_seconds=before.drain_seconds if draft.drain_seconds is None else draft.drain_seconds,
        note=before.note if draft.note is None else draft.note,
    )
    if not wanted.nodes:
        raise Invalid("maintenance needs nodes", field="nodes")
    if wanted.until <= wanted.since:
        raise Invalid("the end is not after the beginning", field="until")
    if wanted.every_days is not None and wanted.until - wanted.drains_at > wanted.every_days * DAY:
        raise Invalid(
            f"it would begin again before it ends: with the time to drain it takes more than {wanted.every_days} days",
            field="every_days",
        )
    if _is_over(wanted, work.now):
        raise Invalid(f"it would be over already, {work.now - wanted.until:.0f} seconds ago", field="until")
    # Nodes that were removed meanwhile may stay.
    missing = [name for name in wanted.nodes if name not in work.state.snapshot.nodes and name not in before.nodes]
    if missing:
        raise Invalid(f"there is no node {', '.join(missing[:NAMED])}", field="nodes", nodes=missing[:NAMED])
    return _next(wanted, work.now)


def _keep(work: Work, record: MaintenanceRecord) -> None:
    work.tx.maintenance.save(record)
    work.state.maintenance[record.name] = record


def _drop(work: Work, name: str) -> None:
    work.tx.maintenance.delete(name)
    del work.state.maintenance[name]


def _detail(record: MaintenanceRecord) -> dict[str, Any]:
    return {
        "nodes": list(record.nodes),
        "since": record.since,
        "until": record.until,
        "every_days": record.every_days,
        "drain_seconds": record.drain_seconds,
    }
