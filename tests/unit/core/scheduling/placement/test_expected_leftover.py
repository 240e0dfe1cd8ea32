"""The expected leftover, where it can be said by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Request
from corral.core.scheduling.placement.expected_leftover import leftover_of
from corral.core.snapshot.request_mix import Mix, mix_of
from tests.unit.core.strategies import requests

GIB = 1 << 30
AMPLE = (64_000, 256 * GIB)


def mix(*asked: Request) -> Mix:
    return mix_of((request, 10) for request in asked)


def test_gpus_without_requests_are_left() -> None:
    leftover = leftover_of(mix(Request(gpu_milli=810)), "A10")
    assert leftover((190,), *AMPLE) == 190
    assert leftover((1000,), *AMPLE) == pytest.approx(190)
    assert leftover((1000, 1000), *AMPLE) == pytest.approx(380)


def test_halves_leave_nothing() -> None:
    leftover = leftover_of(mix(Request(gpu_milli=500)), "A10")
    assert leftover((500, 1000), *AMPLE) == pytest.approx(0, abs=1e-3)
    assert leftover((400,), *AMPLE) == 400


def test_a_hole_is_expected_to_wait_for_what_fills_it() -> None:
    """Two shares of 350 fill a hole of 700, one of 600 leaves 100. By chance alone 57 would be left."""
    leftover = leftover_of(mix(Request(gpu_milli=350), Request(gpu_milli=600)), "A10")
    by_chance = 100 * 0.6**0.5 / (0.6**0.5 + 0.35**0.5)
    assert by_chance == pytest.approx(56.7, abs=0.1)
    assert 30 < leftover((700,), *AMPLE) < 50


def test_a_free_node_is_expected_to_wait_for_what_fills_it() -> None:
    """One request for three GPUs leaves one of four, two for two leave none."""
    leftover = leftover_of(mix(Request(gpus=2), Request(gpus=3)), "A10")
    by_chance = 1000 * 3**0.5 / (3**0.5 + 2**0.5)
    assert 200 < leftover((1000,) * 4, *AMPLE) < by_chance - 100


def test_gpus_without_cpus_or_memory_are_left() -> None:
    leftover = leftover_of(mix(Request(gpus=1, cpu_milli=8000, memory_bytes=32 * GIB)), "A10")
    assert leftover((1000, 1000), 8000, 256 * GIB) == pytest.approx(1000)
    assert leftover((1000, 1000), 64_000, 32 * GIB) == pytest.approx(1000)
    assert leftover((1000, 1000), 16_000, 64 * GIB) == pytest.approx(0, abs=1e-3)


def test_an_empty_node_is_worth_keeping_whole_for_those_who_need_all_of_it() -> None:
    leftover = leftover_of(mix(Request(gpus=4)), "A10")
    assert leftover((1000,) * 4, *AMPLE) == pytest.approx(0, abs=1e-3)
    assert leftover((1000,) * 3, *AMPLE) == 3000


def test_a_model_without_requests_is_left() -> None:
    wanted = mix(Request(gpus=1, models=("H100",)))
    assert leftover_of(wanted, "A10")((1000,), *AMPLE) == 1000
    assert leftover_of(wanted, "H100")((1000,), *AMPLE) == pytest.approx(0, abs=1e-3)


@given(
    st.lists(requests().filter(lambda request: request.wants_gpu), min_size=1, max_size=8),
    st.lists(st.sampled_from([1, 100, 250, 505, 999, 1000, 1000]), max_size=8),
    st.integers(-1000, 80_000),
    st.integers(0, 64),
)
def test_expected_leftover_lies_between_zero_and_all_idle_gpus(
    asked: list[Request], free: list[int], cpu_milli: int, memory_gib: int
) -> None:
    left = leftover_of(mix(*asked), "A10")(tuple(sorted(free)), cpu_milli, memory_gib * GIB)
    assert -1e-6 <= left <= sum(free) + 1e-6
