"""The scheduler's plans over thousands of jobs, with moves, preemptions and failures."""

from __future__ import annotations

import pytest

from tests.unit.core.dense import DenseHistory


@pytest.mark.parametrize(("seed", "jobs"), [(1, 300), (3, 300), (4, 2_000)])
def test_no_plan_over_thousands_of_jobs_contradicts_itself(seed: int, jobs: int) -> None:
    """Each of these had a job that was moved twice, or moved and preempted, within the first two hundred starts."""
    history = DenseHistory(seed=seed, jobs=jobs)
    history.run()
    assert history.problems == []
    assert history.starts >= jobs
    assert min(history.moves, history.preemptions, history.failures) > 0, "or it shows nothing"
