"""How long jobs will run: learned from those that completed, the most alike first, and nothing where none is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.lifecycle import Ended, Event, Planned, StartRequested, StopRequested, Up, advance
from corral.core.model import Allocation, Elastic, EndReason, Grant, Job, JobKind, JobState, Prediction, Request
from corral.core.scheduling.forecast import run_time_model
from corral.core.scheduling.forecast.run_time_model import (
    KEPT_RUNS,
    Features,
    RunTimes,
    learn,
    name_pattern,
    predicted,
)
from corral.core.scheduling.ordering.cost import OrderingRules, expected_seconds, next_fall_at, worth_seconds
from tests.unit.searching import every

ANNS = Features(user="ann", name="resnet-sweep-135eea", kind=JobKind.TRAINING, gpu_milli=4000, model="A10")

run_seconds = st.floats(0, 1e7)
features = every(
    user=("ann", "bob"),
    name=("sweep-1", "sweep-22", "bert", "eval-0af3"),
    kind=(JobKind.TRAINING, JobKind.DISTRIBUTED),
    nodes=(1, 2),
    gpu_milli=(0, 500, 2000, 8000),
    model=(None, "A10", "H100"),
).map(lambda drawn: Features(**drawn))
histories = st.lists(st.tuples(features, run_seconds), max_size=60)


def taught(*runs: tuple[Features, float]) -> RunTimes:
    run_times = RunTimes()
    for what, seconds in runs:
        run_times.observe(what, seconds)
    return run_times


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("resnet-sweep-135eea", "resnet-sweep-#"),
        ("resnet-sweep-7", "resnet-sweep-#"),
        ("resnet50-lr-0.001-run12", "resnet50-lr-#-run#"),
        ("job-2024", "job-#"),
        ("train_a3f9c1", "train_#"),
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "#"),
        ("feed-the-cafe", "feed-the-cafe"),
        ("bert", "bert"),
    ],
)
def test_numbers_and_hashes_are_one_series(name: str, pattern: str) -> None:
    assert name_pattern(name) == pattern


def test_a_history_from_the_first_run_on() -> None:
    """Ann's sweep on other hardware, her other jobs and everybody's count until better is known."""
    run_times = RunTimes()
    assert run_times.predict(ANNS) is None
    bobs = replace(ANNS, user="bob", name="bert")
    for seconds in (50.0, 60.0, 70.0):
        run_times.observe(bobs, seconds)
    assert _predict(run_times, ANNS) == (60.0, 70.0, 3, "all training jobs on 4 GPUs")
    for seconds in (500.0, 600.0, 700.0):
        run_times.observe(replace(ANNS, name="other", gpu_milli=1000), seconds)
    assert _predict(run_times, ANNS) == (600.0, 700.0, 3, "ann's training jobs")
    run_times.observe(replace(ANNS, name="resnet-sweep-1", gpu_milli=8000), 3600.0)
    assert _predict(run_times, ANNS) == (3600.0, 3600.0, 1, "ann's resnet-sweep-# of any size")
    for seconds in (7000.0, 7200.0, 7400.0):
        run_times.observe(replace(ANNS, name="resnet-sweep-2", model="V100"), seconds)
    assert _predict(run_times, ANNS) == (7200.0, 7400.0, 3, "ann's resnet-sweep-# on 4 GPUs")
    for seconds in (4000.0, 4000.0, 4000.0):
        run_times.observe(ANNS, seconds)
    assert _predict(run_times, ANNS) == (4000.0, 4000.0, 3, "ann's resnet-sweep-# on 4 A10 GPUs")
    # A job that takes any model is predicted from runs on all of them, the later ones first.
    assert _predict(run_times, replace(ANNS, model=None))[2:] == (6, "ann's resnet-sweep-# on 4 GPUs")


def _predict(run_times: RunTimes, what: Features) -> tuple[float, float, int, str]:
    prediction = run_times.predict(what)
    assert prediction is not None
    return prediction.p50_seconds, prediction.p90_seconds, prediction.samples, prediction.like


def test_a_program_that_became_slower_is_believed_soon() -> None:
    run_times = taught(*[(ANNS, 100.0)] * KEPT_RUNS, *[(ANNS, 900.0)] * (run_time_model.HALF_LIFE + 1))
    assert _predict(run_times, ANNS)[:2] == (900.0, 900.0)


def test_work_that_is_done_already_leaves_the_rest() -> None:
    run_times = taught(*((ANNS, seconds) for seconds in (100.0, 200.0, 300.0, 400.0)))
    prediction = run_times.predict(ANNS, 150.0)
    assert prediction is not None
    # Of those that took longer: 200, 300 and 400 seconds, the latest of which counts most.
    assert (prediction.p50_seconds, prediction.p90_seconds, prediction.samples) == (150.0, 250.0, 3)
    assert run_times.predict(ANNS, 400.0) is None


@given(histories, features, st.sampled_from([0.0, 10.0, 1e4]))
def test_half_is_never_more_than_nine_tenths(
    runs: list[tuple[Features, float]], asked: Features, done_seconds: float
) -> None:
    prediction = taught(*runs).predict(asked, done_seconds)
    if prediction is not None:
        assert 0 <= prediction.p50_seconds <= prediction.p90_seconds
        assert 1 <= prediction.samples <= max(KEPT_RUNS, len(runs))
        longest = max(seconds for _, seconds in runs)
        assert prediction.p90_seconds + done_seconds <= longest * 1.02 + 1.0, "all runs are counted in narrow buckets"
        assert [*prediction.spread] == sorted(prediction.spread)
        assert all(0 <= seconds <= longest * 1.02 + 1.0 - done_seconds for seconds in prediction.spread)


@given(st.lists(features, min_size=1, max_size=80), features, run_seconds)
def test_a_constant_history_predicts_that_constant(seen: list[Features], asked: Features, seconds: float) -> None:
    prediction = taught(*((what, seconds) for what in seen)).predict(asked)
    if prediction is not None:
        assert prediction.p50_seconds == prediction.p90_seconds == seconds
    # What was seen itself often enough is known.
    if seen.count(asked) >= run_time_model.ENOUGH:
        assert prediction is not None


@given(histories, histories)
def test_other_names_and_users_in_between_change_nothing(
    own: list[tuple[Features, float]], others: list[tuple[Features, float]]
) -> None:
    own = [(replace(what, user="eve", name="mine"), seconds) for what, seconds in own]
    alone, mixed = RunTimes(), RunTimes()
    for number in range(max(len(own), len(others))):
        for what, seconds in own[number : number + 1]:
            alone.observe(what, seconds)
            mixed.observe(what, seconds)
        for what, seconds in others[number : number + 1]:
            mixed.observe(what, seconds)
    for what, _ in own:
        assert mixed.predict(what) == alone.predict(what)


@given(histories)
def test_the_same_history_predicts_the_same(runs: list[tuple[Features, float]]) -> None:
    one, other = taught(*runs), taught(*runs)
    assert [one.predict(what) for what, _ in runs] == [other.predict(what) for what, _ in runs]


def test_memory_is_bounded_and_the_latest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_time_model, "MOST_KEYS", 100)
    run_times = RunTimes()
    for number in range(300):
        # Names without numbers, so that each is its own.
        word = "".join(chr(ord("g") + int(digit)) for digit in str(number))
        for _ in range(40):
            run_times.observe(replace(ANNS, user=f"user-{number}", name=word), float(number))
        assert len(run_times) <= 100
    assert _predict(run_times, replace(ANNS, user="user-299", name=word))[2] == KEPT_RUNS
    forgotten = run_times.predict(replace(ANNS, user="user-1", name="h"))
    assert forgotten is not None
    assert forgotten.like == "all training jobs on 4 GPUs"


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_invalid_run_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="is not a run time"):
        RunTimes().observe(ANNS, seconds)


# ---------------------------------------------------------------- along a job's life

JOB = Job(id="j-1", name="bert-1", user="ann", request=Request(gpus=2), created_at=0.0)
TWO_GPUS = Allocation(grants=(Grant(node="n1", gpus=("n1/0", "n1/1")),), model="A10")


def live(run_times: RunTimes, job: Job, *events: Event) -> Job:
    for event in events:
        after = advance(job, event).job
        learn(run_times, job, after)
        job = after
    return job


def run(until: float, reason: EndReason = EndReason.EXIT_CODE, exit_code: int = 0) -> tuple[Event, ...]:
    return (
        StartRequested(at=0.0),
        Planned(at=5.0, allocation=TWO_GPUS),
        Up(at=10.0),
        Ended(at=until, reason=reason, exit_code=exit_code),
    )


def test_completed_runs_teach_and_others_do_not() -> None:
    run_times = RunTimes()
    live(run_times, JOB, *run(70.0, exit_code=1))
    live(run_times, JOB, *run(70.0, EndReason.TIMED_OUT))
    stop = StopRequested(at=20.0, reason=EndReason.STOPPED_BY_USER)
    live(run_times, JOB, *run(0.0)[:3], stop, Ended(at=21.0, reason=EndReason.EXIT_CODE, exit_code=0))
    assert len(run_times) == 0
    live(run_times, JOB, *run(70.0))
    prediction = predicted(run_times, replace(JOB, name="bert-2")).predicted
    assert prediction is not None
    assert (prediction.p50_seconds, prediction.samples, prediction.like) == (60.0, 1, "ann's bert-# of any size")


def test_a_preempted_job_has_less_to_do_by_what_it_saved() -> None:
    run_times = RunTimes()
    for _ in range(3):
        live(run_times, JOB, *run(110.0))
    up = live(run_times, JOB, *run(0.0)[:3])
    saved = replace(up, checkpointed_at=70.0)
    stop = StopRequested(at=80.0, reason=EndReason.PREEMPTED)
    queued = predicted(run_times, live(run_times, saved, stop, Ended(at=85.0, reason=EndReason.EXIT_CODE)))
    assert queued.saved_seconds == 60.0
    assert queued.predicted is not None
    assert queued.predicted.p50_seconds == 40.0
    # Without a checkpoint everything is to be done again.
    lost = predicted(run_times, live(run_times, up, stop, Ended(at=85.0, reason=EndReason.EXIT_CODE)))
    assert lost.predicted is not None
    assert lost.predicted.p50_seconds == 100.0
    # Similar jobs are predicted the whole run time: 60 seconds before, 40 after.
    live(
        run_times,
        queued,
        Planned(at=200.0, allocation=TWO_GPUS),
        Up(at=200.0),
        Ended(at=240.0, reason=EndReason.EXIT_CODE, exit_code=0),
    )
    prediction = predicted(run_times, JOB).predicted
    assert prediction is not None
    assert (prediction.p50_seconds, prediction.p90_seconds, prediction.samples) == (100.0, 100.0, 4)


def test_an_elastic_job_is_predicted_whatever_size_it_will_have() -> None:
    run_times = RunTimes()
    for _ in range(3):
        live(run_times, JOB, *run(70.0))
    elastic = replace(JOB, request=Request(gpus=1), elastic=Elastic(min_gpus=1, max_gpus=4))
    prediction = predicted(run_times, elastic).predicted
    assert prediction is not None
    assert prediction.like == "ann's bert-# of any size"


def test_a_job_that_is_started_again_goes_on_from_its_checkpoint_unless_it_completed() -> None:
    up = replace(live(RunTimes(), JOB, *run(0.0)[:3]), checkpointed_at=50.0)
    failed = live(RunTimes(), up, Ended(at=60.0, reason=EndReason.EXIT_CODE, exit_code=1))
    assert live(RunTimes(), failed, StartRequested(at=70.0)).saved_seconds == 40.0
    completed = live(RunTimes(), up, Ended(at=60.0, reason=EndReason.EXIT_CODE, exit_code=0))
    assert live(RunTimes(), completed, StartRequested(at=70.0)).saved_seconds == 0.0


# ---------------------------------------------------------------- how different runs are


def test_a_number_is_no_name_and_such_jobs_are_as_different_as_all() -> None:
    numbered = [replace(ANNS, name=f"{number}") for number in range(64)]
    run_times = taught(*((what, 10.0 * (1 + number)) for number, what in enumerate(numbered)))
    prediction = run_times.predict(replace(ANNS, name="99"))
    assert prediction is not None
    assert "#" not in prediction.like
    assert len(prediction.spread) == run_time_model.STEPS
    assert prediction.spread[0] == pytest.approx(20.0, rel=0.03), "of all 64 runs, not only of the latest"
    assert prediction.spread[-1] == pytest.approx(620.0, rel=0.03)
    named = taught(*((ANNS, seconds) for seconds in (10.0, 20.0, 30.0, 40.0)), (numbered[0], 9_000.0)).predict(ANNS)
    assert named is not None
    assert {*named.spread} == {10.0, 20.0, 30.0, 40.0}, "what is called alike is alike"


def test_a_user_with_enough_runs_of_a_size_has_a_spread_of_these_alone() -> None:
    """Names that are mere numbers say nothing; a user's habits do."""

    def unnamed(user: str, count: int, seconds: float) -> list[tuple[Features, float]]:
        return [(replace(ANNS, user=user, name=f"{number}"), seconds) for number in range(count)]

    few = run_time_model.ENOUGH_FOR_SPREAD - 1
    run_times = taught(*unnamed("bob", 100, 9_000.0), *unnamed("ann", few, 10.0))
    asked = replace(ANNS, name="99")
    mixed = run_times.predict(asked)
    assert mixed is not None
    assert mixed.spread[-1] == pytest.approx(9_000.0, rel=0.03), "with few runs, those of all jobs count"
    run_times.observe(asked, 10.0)
    own = run_times.predict(asked)
    assert own is not None
    assert all(seconds == pytest.approx(10.0, rel=0.03) for seconds in own.spread)
    beyond = run_times.predict(asked, 20.0)
    assert beyond is not None
    assert beyond.spread[0] == pytest.approx(8_980.0, rel=0.03), "longer than all own runs: as those of others"
    other_size = run_times.predict(replace(asked, gpu_milli=8000))
    assert other_size is not None
    assert other_size.spread[-1] == pytest.approx(9_000.0, rel=0.03)


def test_spreads_of_forgotten_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_time_model, "MOST_KEYS", 12)
    run_times = RunTimes()
    for number in range(50):
        run_times.observe(replace(ANNS, user=f"user-{number}", name="7"), 10.0)
    assert len(run_times._spreads) <= 12


def test_a_job_longer_than_all_similar_runs_is_compared_with_runs_of_its_length() -> None:
    others = [replace(ANNS, user=f"user-{number}", name="other", gpu_milli=8000) for number in range(8)]
    run_times = taught((ANNS, 60.0), *((what, 3_600.0) for what in others))
    assert run_times.predict(replace(ANNS, user="new", kind=JobKind.WORKBENCH)) is None, "nothing is known of it"
    left = run_times.predict(ANNS, 600.0)
    assert left is not None
    assert (left.samples, left.like) == (8, "jobs that run as long")
    assert left.p50_seconds == pytest.approx(3_000.0, rel=0.03)
    assert run_times.predict(ANNS, 90_000.0) is None


def test_the_spread_of_all_runs_is_bounded_and_follows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_time_model, "_MOST_COUNTED", 100)
    spread = run_time_model.Spread()
    for _ in range(300):
        spread.add(10.0)
    for _ in range(300):
        spread.add(1_000.0)
    assert spread.count_beyond(0.0) <= 100
    assert spread.beyond(0.0)[0] == pytest.approx(1_000.0, rel=0.03), "what was long ago is hardly counted"


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=16), st.floats(0.0, 1e6))
def test_the_worth_of_a_job_is_taken_from_later_ends(seconds: list[float], ran: float) -> None:
    spread = sorted(seconds)
    worth = worth_seconds(spread, ran)
    left = [one - ran for one in spread if one > ran]
    if not left:
        assert worth is None
        return
    assert worth is not None
    ways = [sum(min(one, until) for one in left) / sum(one <= until for one in left) for until in left]
    assert worth == pytest.approx(min(ways))
    assert min(left) <= worth * (1 + 1e-9), "none ends sooner than the soonest"
    assert worth <= sum(left) / len(left) * (1 + 1e-9), "to run all to their end is one way"


def test_a_job_falls_behind_as_it_proves_to_be_one_of_the_long() -> None:
    """Half of its like end at once, half take hours."""
    known = Prediction(p50_seconds=10.0, p90_seconds=7_200.0, samples=8, spread=(10.0,) * 8 + (7_200.0,) * 8)
    job = Job(id="j-1", name="job-1", user="ann", predicted=known)
    rules = OrderingRules(unknown_seconds=86_400.0)
    assert expected_seconds(job, rules) == 20.0, "ten seconds of two jobs for each that ends"
    assert expected_seconds(job, rules, 9.0) == 2.0
    assert expected_seconds(job, rules, 11.0) == 7_189.0
    running = replace(job, state=JobState.RUNNING, started_at=100.0)
    assert next_fall_at(running, rules, 103.0) == 110.0
    assert next_fall_at(running, rules, 111.0) == 7_300.0
    assert expected_seconds(job, rules, 7_200.0) == 86_400.0 - 7_200.0, "beyond that nothing is known"


def test_a_lost_attempt_says_that_a_job_takes_longer_and_no_more() -> None:
    """Similar jobs take 60 s, or 100. Lost work is to be done again, and lost attempts do not add up."""
    known = Prediction(p50_seconds=60.0, p90_seconds=100.0, samples=8)
    rules = OrderingRules(unknown_seconds=50.0)
    for job in (
        Job(id="j-1", name="job-1", user="ann", predicted=known),
        Job(id="j-2", name="job-2", user="ann", predicted=replace(known, spread=(60.0, 100.0))),
    ):
        lost = replace(job, attained_seconds=90.0, reached_seconds=45.0)
        assert expected_seconds(lost, rules) == expected_seconds(job, rules), "twice it did not come to the 60 s"
        assert next_fall_at(replace(lost, state=JobState.RUNNING, started_at=5.0), rules, 15.0) == 65.0
        long = replace(job, attained_seconds=70.0, reached_seconds=70.0)
        assert expected_seconds(long, rules) == 100.0, "it is none of those that take 60 s"
        assert expected_seconds(long, rules, 65.0) == 35.0
        assert next_fall_at(replace(long, state=JobState.RUNNING, started_at=5.0), rules, 15.0) == 105.0
        kept = replace(long, attained_seconds=95.0, saved_seconds=25.0, reached_seconds=95.0)
        assert expected_seconds(kept, rules) == 100.0, "what is predicted comes after what is saved"
        beyond = replace(job, attained_seconds=100.0, reached_seconds=100.0)
        assert expected_seconds(beyond, rules) == 200.0 - 100.0, "nothing is known, and all that it ran counts"
