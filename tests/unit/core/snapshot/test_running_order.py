"""Who stands behind whom among running jobs, against a plain count of all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Job, Prediction
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.running_order import Ranking, rank_in
from tests.unit.core.builders import running
from tests.unit.searching import every, seconds

RULES = OrderingRules(ageing=0.5, unknown_seconds=40.0)
PREDICTIONS = [Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=3) for seconds in (20.0, 300.0)]
RUNNERS = every(
    gpus=(1, 2, 3, 4),
    priority=(1, 2, 3),
    started_at=(0.0, 30.0),
    aged_from=seconds(0, 50),
    time_limit_seconds=(None, 200.0),
    predicted=(None, *PREDICTIONS),
    preemptible=(True, True, True, True, False),
    pinned_at=(None, None, None, 1.0),
)


@st.composite
def runners(draw: st.DrawFn, serial: int) -> Job:
    drawn = draw(RUNNERS)
    return running(serial, {"n1": tuple(range(drawn.pop("gpus")))}, **drawn)


@given(
    st.integers(1, 12).flatmap(lambda count: st.tuples(*(runners(serial) for serial in range(1, count + 1)))),
    st.sampled_from(["priority", "shortest", "weighted"]),
    st.floats(30.0, 500.0),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.lists(st.floats(-10.0, 1_300.0), min_size=1, max_size=4),
    st.sets(st.integers(1, 12)),
)
def test_all_behind_a_place_are_named_and_no_other_job(
    jobs: tuple[Job, ...], policy: str, now: float, margin: float, places: list[float], gone: set[int]
) -> None:
    ranking = Ranking(policy, RULES, jobs)
    for job in jobs:
        if job.serial in gone:
            ranking.remove(job.id)
    left = [job for job in jobs if job.serial not in gone and job.preemptible and job.pinned_at is None]
    # What was computed earlier must not change the answer.
    earlier = ranking.at(0.9 * now, margin)
    assert earlier.next_fall() is None or list(earlier.behind(places[0])) is not None
    then = ranking.at(now, margin)
    for place in places:
        expected = set()
        for job in left:
            rank = rank_in(policy, job, RULES, now)
            assert rank is not None
            if place < rank.place - max(margin * rank.cost, rank.least_lead):
                expected.add(job.id)
        assert {job.id for job in then.behind(place)} == expected


def test_only_what_nothing_is_known_of_falls_back() -> None:
    known = running(1, {"n1": (0,)}, time_limit_seconds=100.0)
    unknown = running(2, {"n1": (1,)})
    assert Ranking("shortest", RULES, [known]).at(10.0, 0.0).next_fall() is None
    assert Ranking("shortest", RULES, [known, unknown]).at(10.0, 0.0).next_fall() == 40.0
    assert Ranking("priority", RULES, [unknown]).at(10.0, 0.0).next_fall() is None
