"""The jobs that draining nodes would displace, computed from the state: for planning a maintenance."""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.errors import NotFound
from corral.control.live.state import State
from corral.core.fleet.drain_preview import DrainPreview, preview
from corral.core.model import Job, Prediction
from corral.core.scheduling.forecast.run_time_model import features_of_run


def drain_preview(state: State, nodes: Sequence[str], at: float | None, now: float) -> DrainPreview:
    """Returns the preview of a drain of the nodes at a time, by default now."""
    for node in nodes:
        if node not in state.snapshot.nodes:
            raise NotFound(f"there is no node {node!r}", field="node")

    def remaining(job: Job) -> Prediction | None:
        """Predicts from past runs that took longer than this run has taken so far; shorter ones no longer apply."""
        if job.allocation is None:
            return None
        ran = 0.0 if job.started_at is None else max(0.0, now - job.started_at)
        done = job.saved_seconds + job.ran_seconds + ran
        return state.run_times.predict(features_of_run(job, job.allocation), done)

    return preview(state.snapshot, tuple(dict.fromkeys(nodes)), now if at is None else at, now, remaining)
