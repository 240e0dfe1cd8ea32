"""Numbers and times as people read them."""

from __future__ import annotations

import pytest

from corral.cli.terminal import formats

NOW = formats.moment("2026-01-03T10:00:00Z")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-3, "0s"),
        (45, "45s"),
        (59.6, "1m"),
        (200, "3m20s"),
        (3601, "1h"),
        (7500, "2h5m"),
        (129_600, "1d12h"),
        (86_400 * 400 + 59, "400d"),
    ],
)
def test_durations_have_their_two_largest_parts(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2.0, "2"), (0.5, "0.5"), (0.125, "0.12"), (1213, "1213"), (0, "0"), (10, "10"), (None, "-")]
)
def test_numbers_have_no_needless_decimals(value: float | None, text: str) -> None:
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2026-01-03T09:56:40.000Z", "3m20s ago"),
        ("2026-01-03T12:05:00Z", "in 2h5m"),
        ("2026-01-03T11:00:00.2+01:00", "now"),
        (None, "-"),
    ],
)
def test_times_are_relative_to_now(at: str | None, text: str) -> None:
    assert formats.ago(at, NOW) == text


def test_run_time_ends_with_the_end_of_the_job() -> None:
    assert formats.between("2026-01-03T09:00:00Z", None, NOW) == "1h"
    assert formats.between("2026-01-03T09:00:00Z", "2026-01-03T09:00:30Z", NOW) == "30s"
    assert formats.between(None, None, NOW) == "-"


def test_times_survive_the_way_to_the_api_and_back() -> None:
    assert formats.rfc3339(NOW + 0.25) == "2026-01-03T10:00:00.250Z"
    assert formats.moment(formats.rfc3339(NOW + 0.25)) == NOW + 0.25


def test_counts_have_a_plural() -> None:
    assert [formats.count(n, "GPU") for n in (0, 1, 2, 0.5)] == ["0 GPUs", "1 GPU", "2 GPUs", "0.5 GPUs"]
    assert formats.percent(0.756) == "76%"
    assert formats.listed([]) == "-"
