"""Verdicts about checks of GPUs: limits of a model, and stragglers among GPUs of one model."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from corral.core.monitoring.checks import (
    LEAST_PEERS,
    SHORTFALL,
    Check,
    Measurement,
    below_limits,
    slower_than_peers,
    stragglers,
)

NAMES = st.text("abcdefgh", min_size=1, max_size=4)
RATES = st.dictionaries(NAMES, st.floats(0.001, 1e6), max_size=30)


def measured(value: float, check: Check = Check.COMPUTE, metric: str = "compute_tflops") -> Measurement:
    return Measurement(check=check, metric=metric, value=value)


def test_a_gpu_far_below_its_peers_is_a_straggler_and_a_little_below_is_not() -> None:
    usual = {f"g{number}": 660.0 + number for number in range(8)}
    assert stragglers({**usual, "slow": 480.0}) == {"slow"}
    assert stragglers({**usual, "slow": 640.0}) == frozenset()
    assert stragglers({**usual, "slow": 480.0, "slower": 300.0}) == {"slow", "slower"}


def test_few_gpus_are_not_compared() -> None:
    assert stragglers({"a": 100.0, "b": 100.0, "c": 1.0}) == frozenset()


def test_where_rates_vary_much_a_low_one_is_usual() -> None:
    assert stragglers({"a": 100.0, "b": 140.0, "c": 60.0, "d": 180.0, "e": 75.0, "f": 120.0}) == frozenset()


@given(RATES)
def test_stragglers_are_few_and_below_the_median_and_not_near_it(values: dict[str, float]) -> None:
    found = stragglers(values)
    if len(values) < LEAST_PEERS:
        assert not found
        return
    middle = median(values.values())
    assert 2 * len(found) <= len(values), "most GPUs are as most GPUs are"
    assert all(values[name] <= middle * (1 - SHORTFALL) + 1e-9 * middle for name in found)
    slowest = max((values[name] for name in found), default=None)
    if slowest is not None:
        assert {name for name, value in values.items() if value <= slowest} == found, "no slower one is left out"


@given(st.dictionaries(NAMES, st.integers(1, 10**6), max_size=30), st.integers(-20, 20))
def test_the_unit_of_a_rate_makes_no_difference(values: dict[str, int], power: int) -> None:
    # Powers of two, so that the same comparison is made with the same digits.
    scaled = {name: float(value) * 2.0**power for name, value in values.items()}
    assert stragglers(scaled) == stragglers({name: float(value) for name, value in values.items()})


@given(RATES, st.randoms(use_true_random=False))
def test_the_order_makes_no_difference(values: dict[str, float], random: object) -> None:
    items = list(values.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert stragglers(dict(items)) == stragglers(values)


def test_limits_are_those_of_the_metric() -> None:
    (problem,) = below_limits([measured(400.0), measured(3000.0, Check.MEMORY, "memory")], {"compute_tflops": 500.0})
    assert (problem.check, problem.is_fatal) == (Check.COMPUTE, False)
    assert problem.text == "compute_tflops is 400, and at least 500 is expected"
    assert below_limits([measured(500.0)], {"compute_tflops": 500.0}) == []


def test_a_disk_is_not_compared_with_those_of_other_gpus() -> None:
    peers = {"compute_tflops": dict.fromkeys("abcd", 100.0), "disk": dict.fromkeys("abcd", 100.0)}
    found = slower_than_peers("slow", [measured(50.0), measured(1.0, Check.DISK, "disk")], peers)
    assert [problem.text for problem in found] == ["compute_tflops is 50, 50% of the median of 5 GPUs of its model"]
