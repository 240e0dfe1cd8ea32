"""Shadow policy: plans every cycle again with candidate rules, and records which jobs would have started instead.

The shadow follows the journal. Each entry brings the changes since the one before; they are applied with the
candidate's queues and rules in place of the real ones, and the cycle is decided again. Every decision is made from the
live snapshot: jobs that the shadow policy would have started do not run in the next cycle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.control.errors import Invalid, NotFound
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import CycleRecord, DifferenceRecord, ShadowRecord
from corral.control.whatif.simulations import cluster_now
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan, Start
from corral.core.snapshot.changes import Change
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import condensed, decode_changes, decode_plan
from corral.core.whatif.scenario import BadScenario, Scenario, check, describe, ruled, scenario_of

#: Differences that are kept.
KEPT = 1000
#: how many texts and starts of one cycle are kept
SHOWN = 20
_RECORD, _COUNTS = "shadow", "shadow-counts"


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Cycles since the shadow was started."""

    seen: int = 0
    same: int = 0
    different: int = 0
    #: followed without deciding, because it had fallen behind
    dropped: int = 0
    #: how often its process had to be begun anew
    failed: int = 0


# ------------------------------------------------------------------------------------------------ deciding again


class Shadow:
    """Follows the journal from a base on."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._snapshot = ClusterSnapshot()

    def catch_up(self, entries: Iterable[bytes]) -> None:
        """Applies the recorded changes of a run without deciding. Raises ValueError."""
        self._snapshot = ClusterSnapshot(self._ruled(condensed(entries)))

    def follow(self, cycle: CycleRecord, *, decides: bool = True) -> DifferenceRecord | None:
        """The next entry; what would have been different, if anything. Raises ValueError."""
        changes = self._ruled(decode_changes(cycle.changes))
        if cycle.is_base:
            self._snapshot = ClusterSnapshot(changes)
        else:
            self._snapshot.apply(changes)
        if not decides:
            return None
        return compared(cycle, self._snapshot, decode_plan(cycle.plan), schedule(self._snapshot, cycle.at))

    def _ruled(self, changes: Iterable[Change]) -> list[Change]:
        return [ruled(self._scenario, change) for change in changes]


def compared(cycle: CycleRecord, snapshot: ClusterSnapshot, live: Plan, shadow: Plan) -> DifferenceRecord | None:
    """The differences in starts, places and preemptions; None if there are none."""
    texts = [*_starts(live.starts, shadow.starts), *_preemptions(live, shadow)]
    if not texts:
        return None
    more = [f"and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
    return DifferenceRecord(
        cycle=cycle.id,
        at=cycle.at,
        texts=(*texts[:SHOWN], *more),
        live=tuple(_plain(snapshot, start) for start in live.starts[:SHOWN]),
        shadow=tuple(_plain(snapshot, start) for start in shadow.starts[:SHOWN]),
    )


def _starts(live: Sequence[Start], shadow: Sequence[Start]) -> list[str]:
    lived = {start.job_id: _nodes(start) for start in live}
    would = {start.job_id: _nodes(start) for start in shadow}
    instead = [job for job in lived if job not in would]
    ahead_of = f" before {instead[0]}" if instead else ", which went on waiting"
    texts = [f"would have started {job}{ahead_of}" for job in would if job not in lived]
    texts += [f"would not have started {job} yet" for job in instead]
    texts += [
        f"would have started {job} on {', '.join(would[job])}, not {', '.join(lived[job])}"
        for job in would
        if job in lived and sorted(would[job]) != sorted(lived[job])
    ]
    return texts


def _preemptions(live: Plan, shadow: Plan) -> list[str]:
    lived = {item.job_id: item.for_job for item in live.preemptions}
    would = {item.job_id: item.for_job for item in shadow.preemptions}
    return [
        *(f"would have preempted {job} for {other}" for job, other in would.items() if job not in lived),
        *(f"would not have preempted {job} for {other}" for job, other in lived.items() if job not in would),
    ]


def _nodes(start: Start) -> list[str]:
    return [grant.node for grant in start.allocation.grants]


def _plain(snapshot: ClusterSnapshot, start: Start) -> dict[str, Any]:
    job = snapshot.jobs.get(start.job_id)
    return {
        "job": start.job_id,
        "name": job.name if job else "",
        "user": job.user if job else "",
        "nodes": {grant.node: list(grant.gpus) for grant in start.allocation.grants},
        "gpus": len(start.allocation.gpus),
    }


# ------------------------------------------------------------------------------------------------ use cases


def start(work: Work, caller: Caller, changes: Mapping[str, Any]) -> ShadowRecord:
    """Starts a shadow policy. It replaces a running one, whose differences are deleted."""
    require_operator(caller, "run a shadow policy")
    scenario = scenario_of(changes)
    if scenario.is_empty:
        raise Invalid("a shadow policy needs a changed rule", field="queues")
    try:
        check(scenario, cluster_now(work.state))
    except BadScenario as error:
        raise Invalid(str(error), field=error.field) from error
    record = ShadowRecord(changes=changes, started_by=caller.name, started_at=work.now)
    _save(work, record)
    work.tx.shadow.clear()
    work.tx.meta.put(_COUNTS, _dumped(Counts()))
    work.record(caller, "shadow.started", "shadow", detail={"changes": describe(scenario)})
    return record


def stop(work: Work, caller: Caller) -> ShadowRecord:
    """Stops the shadow policy; its differences can still be read."""
    require_operator(caller, "run a shadow policy")
    record = known(work.tx)
    if record is None or record.stopped_at is not None:
        raise NotFound("no shadow policy runs", field="shadow")
    stopped = ShadowRecord(
        changes=record.changes, started_by=record.started_by, started_at=record.started_at, stopped_at=work.now
    )
    _save(work, stopped)
    work.record(caller, "shadow.stopped", "shadow")
    return stopped


def note(work: Work, differences: Sequence[DifferenceRecord], counts: Counts) -> None:
    """Stores the differences that the follower has found since the last call."""
    work.tx.shadow.add(differences)
    work.tx.shadow.keep(KEPT)
    work.tx.meta.put(_COUNTS, _dumped(counts))


def known(tx: Transaction) -> ShadowRecord | None:
    """The last one that was started, running or not."""
    text = tx.meta.get(_RECORD)
    return None if text is None else ShadowRecord(**json.loads(text))


def counts_of(tx: Transaction) -> Counts:
    text = tx.meta.get(_COUNTS)
    return Counts() if text is None else Counts(**json.loads(text))


def _save(work: Work, record: ShadowRecord) -> None:
    work.tx.meta.put(
        _RECORD,
        json.dumps(
            {
                "changes": dict(record.changes),
                "started_by": record.started_by,
                "started_at": record.started_at,
                "stopped_at": record.stopped_at,
            }
        ),
    )


def _dumped(counts: Counts) -> str:
    return json.dumps(
        {
            "seen": counts.seen,
            "same": counts.same,
            "different": counts.different,
            "dropped": counts.dropped,
            "failed": counts.failed,
        }
    )
