"""Amounts as people write them, and the errors for those that make no sense."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.quantities import (
    format_bytes,
    format_duration,
    parse_bytes,
    parse_cpus,
    parse_duration,
    parse_gpus,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90),
        ("90", 90),
        ("90s", 90),
        ("90m", 5400),
        ("2h", 7200),
        ("1d12h", 129600),
        ("1.5h", 5400),
        (" 1H30M ", 5400),
        ("1w", 604800),
        ("1:00:00", 3600),
        ("0:00:05", 5),
        ("2-12:30:00", 2 * 86400 + 45000),
        (0, 0),
        (0.5, 0.5),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "2x",
        "12h1d",
        "1h1h",
        "-5",
        -5,
        "two hours",
        math.inf,
        math.nan,
        True,
        "99999999d",
        "1h 30m",
        10**400,
        "1:30",
        "1:60:00",
        "1:00:99",
    ],
)
def test_invalid_duration_is_refused_with_a_message(text: str | float) -> None:
    with pytest.raises(ValueError, match=r"duration|number"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (512, 512),
        ("512", 512),
        ("500M", 500_000_000),
        ("500MB", 500_000_000),
        ("16GiB", 16 * 2**30),
        ("16Gi", 16 * 2**30),
        ("1.5KiB", 1536),
        ("2 TiB", 2 * 2**40),
        ("16gib", 16 * 2**30),
        ("0", 0),
        (2**59 + 1, 2**59 + 1),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "16XB", "GiB", "16iB", "-1", -1, "9999999PiB", "16 GiB extra", True, math.nan])
def test_invalid_size_is_refused_with_a_message(text: str | float) -> None:
    with pytest.raises(ValueError, match=r"size|number"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("value", "parts"), [(0, (0, 0)), (0.5, (0, 500)), (0.001, (0, 1)), (1, (1, 0)), (8.0, (8, 0))]
)
def test_gpus_are_whole_or_a_share_of_one(value: float, parts: tuple[int, int]) -> None:
    assert parse_gpus(value) == parts


@pytest.mark.parametrize("value", [1.5, -1, 0.0001, 0.12345, math.inf, 10**9, True])
def test_odd_numbers_of_gpus_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"GPU|number"):
        parse_gpus(value)


def test_cpus_are_counted_in_thousandths() -> None:
    assert parse_cpus(0.5) == 500
    assert parse_cpus(4) == 4000
    with pytest.raises(ValueError, match="smallest"):
        parse_cpus(0.0001)


@given(st.integers(min_value=0, max_value=10**8))
def test_a_written_duration_reads_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_sizes_for_people() -> None:
    assert format_bytes(0) == "0B"
    assert format_bytes(1536) == "1.5KiB"
    assert format_bytes(80 * 2**30) == "80GiB"
