"""Simulations (what-if questions): requests of operators, and the state of a simulation while it runs.

A question is asked here and answered by a process of its own, one at a time. It is `waiting`, then `working`; a server
that dies over one begins it again at the next start, and gives it up when that happens too often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from corral.control.errors import Invalid, NotFound, OverLimit, WrongState
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import SimulationRecord, SimulationSource, SimulationState
from corral.control.reports.report_data import DAY, Span
from corral.core.snapshot.changes import Change, PutBudget, PutJob, PutLastNode, PutScore
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.whatif.scenario import BadScenario, check, describe, scenario_of

SHORTEST_SECONDS, LONGEST_SECONDS = 60.0, 92 * DAY
#: Questions that may wait at a time, and how many answers are kept.
MOST_WAITING = 10
KEPT = 100
#: How often one is begun again after the server died over it.
MOST_STARTS = 2
MAX_NAME, MAX_ERROR = 100, 500


def span_asked(now: float, *, days: float | None, since: float | None, until: float | None) -> Span:
    """The window that a request means: so many days until now, or from then to then."""
    if days is not None and (since is not None or until is not None):
        raise Invalid("give either days, or since (and until)", field="days")
    if until is not None and until > now:
        raise Invalid("the end of the window is in the future", field="until")
    end = now if until is None else until
    begin = end - (7.0 if days is None else days) * DAY if since is None else since
    field = "since" if since is not None else "days"
    if end - begin < SHORTEST_SECONDS:
        raise Invalid("a window has at least a minute, and begins before it ends", field=field)
    if end - begin > LONGEST_SECONDS:
        raise Invalid(f"a window has at most {LONGEST_SECONDS / DAY:.0f} days", field=field, limit_days=92)
    return Span(since=max(0.0, begin), until=end)


def cluster_now(state: State) -> list[Change]:
    """The cluster as it is: rules, queues, nodes, quotas, groups and reservations, without jobs."""
    return list(_changes_without_jobs(state.snapshot))


def _changes_without_jobs(snapshot: ClusterSnapshot) -> Iterator[Change]:
    for change in snapshot.contents():
        if isinstance(change, PutJob):
            # They come last, and may be very many.
            return
        # Simulated time is not charged: a budget that is spent now would hold its jobs for the whole simulation.
        if not isinstance(change, PutLastNode | PutScore | PutBudget):
            yield change


def request(
    work: Work,
    caller: Caller,
    *,
    name: str,
    span: Span,
    base: Mapping[str, Any],
    candidate: Mapping[str, Any],
    source: SimulationSource = SimulationSource.HISTORY,
) -> SimulationRecord:
    require_operator(caller, "ask what-if questions")
    cluster = cluster_now(work.state)
    for field, plain in (("base", base), ("candidate", candidate)):
        _check(work, field, plain, cluster)
    if len(name) > MAX_NAME:
        raise Invalid(f"a name has at most {MAX_NAME} characters", field="name", limit=MAX_NAME)
    unfinished = work.tx.simulations.unfinished()
    if len(unfinished) >= MOST_WAITING:
        raise OverLimit(f"{len(unfinished)} simulations wait already: try again later", limit=MOST_WAITING)
    record = SimulationRecord(
        id=work.tx.simulations.next_id(),
        name=name or describe(scenario_of(candidate))[:MAX_NAME],
        source=source,
        since=span.since,
        until=span.until,
        history_since=_history_since(work, span) if source is SimulationSource.HISTORY else None,
        base=base,
        candidate=candidate,
        created_by=caller.name,
        created_at=work.now,
    )
    work.tx.simulations.save(record)
    work.record(caller, "simulation.requested", record.id, detail=_detail(record))
    return record


def _history_since(work: Work, span: Span) -> float | None:
    """When the history of jobs begins, if it does within the window, or after it. Idle time before the first job would
    make every mean of the window meaningless."""
    attempts = [] if (first := work.tx.usage.begins_at()) is None else [first]
    waiting = [job.created_at for job in work.state.snapshot.jobs.values()]
    begin = min(attempts + waiting, default=span.until)
    return min(begin, span.until) if begin > span.since else None


def _check(work: Work, field: str, plain: Mapping[str, Any], cluster: list[Change]) -> None:
    scenario = scenario_of(plain)
    if scenario.all_policies and field == "base":
        raise Invalid("all policies are compared with one base: leave it out there", field="base.all_policies")
    try:
        check(scenario, cluster)
    except BadScenario as error:
        raise Invalid(str(error), field=f"{field}.{error.field}") from error
    unknown = [user for user in scenario.quotas if work.tx.people.user(user) is None]
    if unknown:
        raise Invalid(f"there is no user {unknown[0]!r}", field=f"{field}.quotas")


def existing(tx: Transaction, simulation_id: str) -> SimulationRecord:
    record = tx.simulations.get(simulation_id)
    if record is None:
        raise NotFound(f"there is no simulation {simulation_id!r}", field="simulation")
    return record


def with_result(tx: Transaction, simulation_id: str) -> tuple[SimulationRecord, Mapping[str, Any] | None]:
    record = existing(tx, simulation_id)
    return record, tx.simulations.result(simulation_id) if record.state is SimulationState.READY else None


def cancel(work: Work, caller: Caller, simulation_id: str) -> SimulationRecord:
    """The caller ends its process when this is committed."""
    require_operator(caller, "ask what-if questions")
    record = existing(work.tx, simulation_id)
    if record.state.is_over:
        raise WrongState(f"simulation {simulation_id} is {record.state}", field="simulation", state=record.state)
    cancelled = replace(record, state=SimulationState.CANCELLED, ended_at=work.now)
    work.tx.simulations.save(cancelled)
    work.record(caller, "simulation.cancelled", record.id, detail=_detail(record))
    return cancelled


def delete(work: Work, caller: Caller, simulation_id: str) -> None:
    """The caller ends its process and removes its folder when this is committed."""
    require_operator(caller, "ask what-if questions")
    record = existing(work.tx, simulation_id)
    work.tx.simulations.delete([simulation_id])
    work.record(caller, "simulation.deleted", simulation_id, detail=_detail(record))


# ------------------------------------------------------------------------------------------------ while it is answered


def begin(work: Work, simulation_id: str) -> SimulationRecord | None:
    """Marks a simulation as working. None if it is over, or was started too often."""
    record = work.tx.simulations.get(simulation_id)
    if record is None or record.state.is_over:
        return None
    if record.starts >= MOST_STARTS:
        interrupt(work, simulation_id, f"the server stopped {record.starts} times while it ran")
        return None
    begun = replace(record, state=SimulationState.WORKING, started_at=work.now, starts=record.starts + 1)
    work.tx.simulations.save(begun)
    work.record(SYSTEM, "simulation.started", record.id, detail=_detail(record))
    return begun


def count_jobs(work: Work, simulation_id: str, jobs: int) -> None:
    record = work.tx.simulations.get(simulation_id)
    if record is not None:
        work.tx.simulations.save(replace(record, jobs=jobs))


def finish(work: Work, simulation_id: str, result: Mapping[str, Any]) -> SimulationRecord | None:
    """Stores the result of a simulation. None if it was cancelled or deleted."""
    record = work.tx.simulations.get(simulation_id)
    if record is None or record.state is not SimulationState.WORKING:
        return None
    ready = replace(record, state=SimulationState.READY, ended_at=work.now, error="", headline=_headline(result))
    work.tx.simulations.save(ready)
    work.tx.simulations.save_result(simulation_id, result)
    work.record(SYSTEM, "simulation.ready", simulation_id, detail=_detail(ready))
    return ready


def fail(work: Work, simulation_id: str, error: str) -> None:
    _end(work, simulation_id, SimulationState.FAILED, "simulation.failed", error)


def interrupt(work: Work, simulation_id: str, error: str) -> None:
    _end(work, simulation_id, SimulationState.INTERRUPTED, "simulation.interrupted", error)


def drop_old(work: Work) -> list[str]:
    """All but the newest go; which ones, so that the caller can remove their folders."""
    unfinished = {record.id for record in work.tx.simulations.unfinished()}
    old = [simulation_id for simulation_id in work.tx.simulations.ids()[KEPT:] if simulation_id not in unfinished]
    if old:
        work.tx.simulations.delete(old)
    return old


def _end(work: Work, simulation_id: str, state: SimulationState, action: str, error: str) -> None:
    record = work.tx.simulations.get(simulation_id)
    if record is None or record.state.is_over:
        return
    ended = replace(record, state=state, ended_at=work.now, error=error[:MAX_ERROR])
    work.tx.simulations.save(ended)
    work.record(SYSTEM, action, simulation_id, detail={**_detail(ended), "error": ended.error})


def _headline(result: Mapping[str, Any]) -> dict[str, Any]:
    runs = {name: result[name] for name in ("base", "candidate")}
    return {
        "wait_mean_seconds": {name: run["wait_seconds"]["mean"] for name, run in runs.items()},
        "completion_mean_seconds": {name: run["completion_seconds"]["mean"] for name, run in runs.items()},
        "utilization": {name: run["utilization"] for name, run in runs.items()},
        "preemptions": {name: run["preemptions"] for name, run in runs.items()},
    }


def _detail(record: SimulationRecord) -> dict[str, Any]:
    return {"name": record.name, "candidate": describe(scenario_of(record.candidate))}
