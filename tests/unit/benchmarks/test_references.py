"""The plain reference simulations of `benchmarks`, on cases that can be computed by hand."""

from __future__ import annotations

from benchmarks.references import LAS_GPU_SECONDS, Ended, by_score, easy, first_fit, las, srsf

COST = 60.0


def job(number: int, at: float, seconds: float, *, nodes: int = 1, gpus: int = 1, user: str = "ann") -> Ended:
    return Ended(number=number, user=user, nodes=nodes, gpus=gpus, submitted_at=at, run_seconds=seconds)


def ends(jobs: list[Ended]) -> list[float]:
    return [one.held[-1][1] for one in jobs]


def test_first_fit_starts_in_the_order_of_arrival_and_lets_small_jobs_pass() -> None:
    jobs = [job(0, 0, 100, gpus=2), job(1, 1, 50, nodes=2, gpus=2), job(2, 2, 200, gpus=1)]
    # The gang waits for both nodes; the small job takes a GPU of the second node and delays it.
    assert ends(first_fit(jobs, 2, 2)) == [100, 252, 202]


def test_the_order_by_score_puts_users_with_little_usage_first_and_lets_all_jobs_pass() -> None:
    jobs = [
        job(0, 0, 100, gpus=2),
        job(1, 1, 50, gpus=2),
        job(2, 2, 30, nodes=2, gpus=2, user="bob"),
        job(3, 3, 10, user="bob"),
    ]
    # On two nodes: the gang of bob waits for both, his small job and the second job of ann start at once.
    assert ends(by_score(jobs, 2, 2)) == [100, 51, 130, 61]
    jobs = [job(0, 0, 100), job(1, 1, 50), job(2, 2, 10, user="bob")]
    assert ends(by_score(jobs, 1, 1)) == [100, 160, 110]


def test_easy_lets_no_job_delay_the_first_that_waits() -> None:
    jobs = [job(0, 0, 100, gpus=2), job(1, 1, 50, nodes=2, gpus=2), job(2, 2, 200), job(3, 3, 90)]
    # The long job would run into the planned start of the gang at 100; the short one ends before it.
    assert ends(easy(jobs, 2, 2)) == [100, 150, 350, 93]


def test_least_remaining_service_preempts_and_charges_the_cost() -> None:
    jobs = [job(0, 0, 100), job(1, 1, 10)]
    ended = srsf(jobs, 1, 1, COST)
    assert ends(ended) == [11 + COST + 99, 11]
    assert [one.preemptions for one in ended] == [1, 0]
    assert ended[0].held == [(0, 1), (11, 170)]
    assert ended[0].wait_seconds == 10


def test_least_attained_service_puts_long_jobs_behind_new_ones() -> None:
    limit = LAS_GPU_SECONDS
    jobs = [job(0, 0, 2 * limit), job(1, limit / 2, 100)]
    ended = las(jobs, 1, 1, COST)
    # The first job keeps its GPU until it has used up the first queue's service, then the second one runs.
    assert ended[0].held == [(0, limit), (limit + 100, limit + 100 + COST + limit)]
    assert ends(ended)[1] == limit + 100
