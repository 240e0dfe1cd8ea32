"""When a waiting job starts: stories in numbers, and what must hold for every cluster."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from corral.core.model import Elastic, EndReason, Job, JobState, Prediction, Queue
from corral.core.people.membership import Membership
from corral.core.people.scores import Score
from corral.core.scheduling.forecast.accuracy import PastEstimate, calibrate
from corral.core.scheduling.forecast.estimates import Effort, Forecaster, basis_text, forecast
from corral.core.snapshot.changes import PutMembership, PutRules, PutScore
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.replica import copy_of
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.recount import dump_snapshot
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR

NOW = 100.0
#: Everything is only counted.
COUNTED = Effort(sizes=((float("inf"), 3, 0),))


def known(seconds: float) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=seconds, samples=32)


def guessed(seconds: float) -> Prediction:
    return Prediction(p50_seconds=seconds, p90_seconds=3 * seconds, samples=3)


# ---------------------------------------------------------------- stories


def test_a_job_that_has_room_starts_now() -> None:
    cluster = snapshot_of(node("a", 2), waiting(1, gpus=1, predicted=guessed(600.0)))
    estimate = forecast(cluster, NOW).estimates["j-1"]
    assert (estimate.p50, estimate.p90) == (NOW, NOW)


def test_a_line_of_known_jobs_is_estimated_to_the_second() -> None:
    cluster = snapshot_of(
        node("a", 1),
        running(1, {"a": (0,)}, predicted=known(400.0)),
        waiting(2, gpus=1, predicted=known(50.0)),
        waiting(3, gpus=1, predicted=known(70.0)),
        waiting(4, gpus=1, predicted=known(10.0)),
    )
    estimates = forecast(cluster, NOW).estimates
    assert [(estimates[job].p50, estimates[job].p90) for job in ("j-2", "j-3", "j-4")] == [
        (400.0, 400.0),
        (450.0, 450.0),
        (520.0, 520.0),
    ]
    assert basis_text(estimates["j-2"]) == "the scheduler run forward, with run times that are known"


def test_guessed_run_time_has_a_spread() -> None:
    cluster = snapshot_of(
        node("a", 1), running(1, {"a": (0,)}, predicted=guessed(400.0)), waiting(2, gpus=1, predicted=guessed(50.0))
    )
    estimate = forecast(cluster, NOW).estimates["j-2"]
    assert NOW < estimate.p50 < estimate.p90
    assert estimate.rollouts == 9
    assert "9 times" in basis_text(estimate)


def test_a_job_that_outlived_its_prediction_is_waited_for_longer() -> None:
    def p50(now: float) -> float:
        cluster = snapshot_of(
            node("a", 1), running(1, {"a": (0,)}, predicted=guessed(400.0)), waiting(2, gpus=1, predicted=known(50.0))
        )
        return forecast(cluster, now).estimates["j-2"].p50

    assert p50(10.0) < p50(800.0) < p50(4000.0)
    assert p50(4000.0) > 4000.0 + 100.0


def test_a_time_limit_is_never_exceeded() -> None:
    cluster = snapshot_of(
        node("a", 1),
        running(1, {"a": (0,)}, predicted=guessed(5000.0), time_limit_seconds=600.0),
        waiting(2, gpus=1, predicted=known(50.0)),
    )
    assert forecast(cluster, NOW).estimates["j-2"].p90 <= 600.0


def test_estimate_counts_jobs_ahead_without_known_run_time() -> None:
    cluster = snapshot_of(node("a", 1), running(1, {"a": (0,)}), waiting(2, gpus=1), waiting(3, gpus=1))
    estimates = forecast(cluster, NOW).estimates
    assert (estimates["j-2"].unknown, estimates["j-3"].unknown) == (1, 2)
    assert "nothing is known of the run time of 2 jobs in front of it" in basis_text(estimates["j-3"])


def test_a_job_that_can_never_run_has_no_estimate() -> None:
    cluster = snapshot_of(node("a", 1), running(1, {"a": (0,)}, predicted=known(400.0)), waiting(2, gpus=4))
    assert forecast(cluster, NOW).estimates == {}
    assert forecast(cluster, NOW, effort=COUNTED).estimates == {}


def test_a_job_that_comes_after_another_starts_when_that_has_completed() -> None:
    first = running(1, {"a": (0,)}, predicted=known(400.0))
    cluster = snapshot_of(node("a", 2), first, waiting(2, gpus=1, predicted=known(50.0), after=("j-1",)))
    assert forecast(cluster, NOW).estimates["j-2"].p50 == 400.0


def test_a_job_that_is_stopped_makes_room_after_its_grace_time() -> None:
    stopping = replace(
        running(1, {"a": (0,)}, grace_seconds=30.0), state=JobState.STOPPING, stopping_for=EndReason.STOPPED_BY_USER
    )
    cluster = snapshot_of(node("a", 1), stopping, waiting(2, gpus=1, predicted=known(50.0)))
    assert forecast(cluster, NOW).estimates["j-2"].p50 == NOW + 30.0


def test_an_elastic_job_makes_room() -> None:
    elastic = running(1, {"a": (0, 1)}, predicted=known(4000.0), elastic=Elastic(min_gpus=1, max_gpus=2))
    cluster = snapshot_of(node("a", 2), elastic, waiting(2, gpus=1, predicted=known(50.0)))
    assert forecast(cluster, NOW).estimates["j-2"].p50 < 4000.0


def test_job_held_by_a_user_limit_starts_when_a_job_of_the_user_ends() -> None:
    for effort in (Effort(), COUNTED):
        cluster = snapshot_of(
            node("a", 4),
            PutRules(limits=Limits(max_gpus_per_user=1), score_time_constant=3600.0),
            running(1, {"a": (0,)}, user="ann", predicted=known(400.0)),
            running(2, {"a": (1, 2, 3)}, user="bob", predicted=known(200.0)),
            waiting(3, "ann", gpus=1, predicted=known(50.0)),
            waiting(4, "eve", gpus=1, predicted=known(50.0)),
        )
        estimates = forecast(cluster, NOW, effort=effort).estimates
        assert (estimates["j-3"].p50, estimates["j-4"].p50) == (400.0, 200.0)


def test_counting_follows_shares() -> None:
    """The user who has had nothing goes before the one who has had much."""
    cluster = snapshot_of(
        node("a", 1),
        Queue(name="default", policy="fair-share"),
        PutScore(user="ann", model="A10", score=Score(value=0.5, usage=1.0, at=0.0)),
        running(1, {"a": (0,)}, user="ann", predicted=known(400.0)),
        *(waiting(serial, "ann", gpus=1, predicted=known(3600.0)) for serial in (2, 3, 4)),
        *(waiting(serial, "bob", gpus=1, predicted=known(3600.0), at=50.0) for serial in (5, 6, 7)),
    )
    exact, counted = forecast(cluster, NOW), forecast(cluster, NOW, effort=COUNTED)
    for estimates in (exact.estimates, counted.estimates):
        order = sorted(estimates, key=lambda job_id: estimates[job_id].p50)
        assert order.index("j-5") < order.index("j-3")
        assert order[-1] == "j-4" or order[-1] == "j-7"
    assert {one.is_counted for one in counted.estimates.values()} == {True}
    assert "GPUs were only counted" in basis_text(counted.estimates["j-7"])


def test_counting_comes_near_to_the_scheduler_where_jobs_are_alike() -> None:
    cluster = snapshot_of(
        node("a", 8),
        *(running(number, {"a": (number - 1,)}, predicted=known(300.0 + 40.0 * number)) for number in range(1, 9)),
        *(waiting(number, gpus=1, predicted=known(600.0)) for number in range(9, 60)),
    )
    exact, counted = forecast(cluster, NOW).estimates, forecast(cluster, NOW, effort=COUNTED).estimates
    assert exact.keys() == counted.keys()
    for job_id, estimate in exact.items():
        assert abs(counted[job_id].p50 - estimate.p50) <= 1.0 + 0.02 * (estimate.p50 - NOW)


def test_earlier_outcomes_stretch_the_next_estimates() -> None:
    cluster = snapshot_of(
        node("a", 1), running(1, {"a": (0,)}, predicted=guessed(4000.0)), waiting(2, gpus=1, predicted=guessed(50.0))
    )
    plain = forecast(cluster, NOW).estimates["j-2"]
    half, most = plain.raw_p50 - NOW, plain.raw_p90 - NOW
    late = [
        PastEstimate(
            job_id=f"j-{number}",
            attempt=1,
            queue="default",
            made_at=0.0,
            p50=half,
            p90=most,
            raw_p50=half,
            raw_p90=most,
            started_at=3.0 * most,
        )
        for number in range(40)
    ]
    corrected = forecast(cluster, NOW, calibration=calibrate(late, now=10 * most)).estimates["j-2"]
    assert corrected.raw_p90 == plain.raw_p90
    assert 2.8 * most < corrected.p90 - NOW < 3.2 * most
    assert corrected.outcomes == 40
    assert "corrected by what became of 40 earlier estimates" in basis_text(corrected)


def test_members_of_other_groups_get_no_wrong_estimate() -> None:
    cluster = snapshot_of(
        node("a", 1),
        PutMembership(user="ann", membership=Membership(group="night", pool="night")),
        running(1, {"a": (0,)}, predicted=known(400.0)),
        waiting(2, "ann", gpus=1, predicted=known(50.0)),
        waiting(3, "bob", gpus=1, predicted=known(50.0)),
    )
    for effort in (Effort(), COUNTED):
        assert forecast(cluster, NOW, effort=effort).estimates.keys() == {"j-3"}


# ---------------------------------------------------------------- what always holds


def _at_the_last_arrival(history: History) -> tuple[Simulation, float, dict[str, float]]:
    """The snapshot when the last job has come, and when those that wait then really start."""
    simulation = history.simulation()
    left = len(history.arrivals)
    starts: dict[str, float] = {}
    now = 0.0
    snapshot = ClusterSnapshot()
    for step in simulation:
        if left:
            left -= len(step.arrived)
            if not left:
                now = step.at
                snapshot = ClusterSnapshot(simulation.snapshot.contents())
        if not left:
            starts |= {start.job_id: step.at for start in step.plan.starts}
    return Simulation(snapshot=snapshot, arrivals=()), now, starts


@DEAR
@given(histories())
def test_with_known_run_times_and_no_arrivals_the_estimate_is_the_start(history: History) -> None:
    def with_prediction(arrival: Arrival) -> Arrival:
        return replace(arrival, job=replace(arrival.job, predicted=known(arrival.run_seconds)))

    exact = replace(history, arrivals=tuple(with_prediction(arrival) for arrival in history.arrivals))
    before, now, starts = _at_the_last_arrival(exact)
    estimates = forecast(before.snapshot, now).estimates
    assert {job_id: estimate.p50 for job_id, estimate in estimates.items()} == starts
    assert all(estimate.p90 == estimate.p50 for estimate in estimates.values())


@DEAR
@given(histories())
def test_the_same_snapshot_gives_the_same_answer_and_is_not_changed(history: History) -> None:
    before, now, _ = _at_the_last_arrival(history)
    snapshot = before.snapshot
    kept = dump_snapshot(snapshot)
    first = forecast(snapshot, now)
    assert dump_snapshot(snapshot) == kept
    again = Forecaster()
    again.forecast(copy_of(snapshot), now + 5.0)
    assert again.forecast(copy_of(snapshot), now) == first
    assert forecast(ClusterSnapshot(snapshot.contents()), now) == first


@DEAR
@given(histories())
def test_estimates_are_in_order_and_never_before_now(history: History) -> None:
    before, now, _ = _at_the_last_arrival(history)
    for effort in (Effort(), COUNTED):
        for job_id, estimate in forecast(before.snapshot, now, effort=effort).estimates.items():
            assert before.snapshot.jobs[job_id].state is JobState.QUEUED
            assert now <= estimate.p50 <= estimate.p90


@DEAR
@given(histories())
def test_counting_estimates_every_job_that_the_scheduler_does(history: History) -> None:
    before, now, _ = _at_the_last_arrival(history)
    exact = forecast(before.snapshot, now).estimates
    counted = forecast(before.snapshot, now, effort=COUNTED).estimates
    missing = exact.keys() - counted.keys()
    assert all(before.snapshot.jobs[job_id].after for job_id in missing)


def test_the_replica_follows_changes() -> None:
    forecaster = Forecaster()
    jobs: list[Job] = [waiting(number, gpus=1, predicted=known(100.0)) for number in range(2, 6)]
    first = snapshot_of(node("a", 1), running(1, {"a": (0,)}, predicted=known(400.0)), *jobs)
    assert forecaster.forecast(copy_of(first), NOW).estimates["j-5"].p50 == 700.0
    later = snapshot_of(
        node("a", 2),
        Queue(name="default", policy="shortest"),
        running(2, {"a": (0,)}, predicted=known(400.0)),
        *jobs[1:],
    )
    assert forecaster.forecast(copy_of(later), NOW) == forecast(later, NOW)
