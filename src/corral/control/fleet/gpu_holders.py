"""The attempt that holds each GPU at this moment: readings of the GPU are assigned to that attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from corral.control.live.state import State
from corral.control.ports import Holder


def holders(state: State) -> Mapping[str, Sequence[Holder]]:
    """The holders of each GPU that is not free. Returns the same mapping until the state changes."""
    if state.held_by[0] != state.changes:
        state.held_by = (state.changes, _found(state))
    return state.held_by[1]


def _found(state: State) -> dict[str, list[Holder]]:
    found: defaultdict[str, list[Holder]] = defaultdict(list)
    for attempt in state.attempts.values():
        job = state.snapshot.jobs[attempt.job_id]
        for grant in attempt.allocation.grants:
            holder = Holder(
                job_id=job.id,
                attempt_id=attempt.id,
                user=job.user,
                kind=job.kind,
                gpu_milli=grant.gpu_milli,
                running_since=job.started_at,
                after_gpu_failure=bool(job.avoid_gpus),
                idles=job.idles,
            )
            for gpu in grant.gpus:
                found[gpu].append(holder)
    return dict(found)
