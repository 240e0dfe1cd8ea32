"""Budgets as values: periods, charges that add up, refunds, forecasts and amounts as text."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import EndReason
from corral.core.people.budgets import (
    MICRO,
    Account,
    AccountKind,
    Budget,
    Period,
    Price,
    Unit,
    accounts_of,
    amount_text,
    budget_end,
    charges,
    is_platform_end,
    lost_part,
    months_between,
    parse_micro,
    period_at,
    saved_until,
)
from tests.unit.core.builders import running

HOUR = 3600.0
ANN = Account(kind=AccountKind.USER, name="ann")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("period", "now", "begin", "end"),
    [
        (Period.MONTH, "2026-02-14T12:00", "2026-02-01", "2026-03-01"),
        (Period.MONTH, "2026-12-31T23:59", "2026-12-01", "2027-01-01"),
        (Period.MONTH, "2027-01-01", "2027-01-01", "2027-02-01"),
        (Period.QUARTER, "2026-02-14", "2026-01-01", "2026-04-01"),
        (Period.QUARTER, "2026-11-18", "2026-10-01", "2027-01-01"),
    ],
)
def test_a_period_begins_with_a_month_in_utc(period: Period, now: str, begin: str, end: str) -> None:
    assert period_at(period, at(now)) == (at(begin), at(end))


def test_the_total_never_ends() -> None:
    assert period_at(Period.TOTAL, at("2026-02-14")) == (0.0, None)


def test_a_charge_over_the_end_of_a_month_is_divided() -> None:
    parts = charges(
        price=Price(weight_micro=2 * MICRO, money_micro=3 * MICRO),
        gpu_milli=4000,
        planned_at=at("2026-01-31T22:00"),
        since=at("2026-01-31T22:00"),
        until=at("2026-02-01T01:00"),
    )
    assert [(part.until - part.since) / HOUR for part in parts] == [2.0, 1.0]
    assert [part.amounts for part in parts] == [
        {Unit.GPU_HOURS: 16 * MICRO, Unit.MONEY: 24 * MICRO},
        {Unit.GPU_HOURS: 8 * MICRO, Unit.MONEY: 12 * MICRO},
    ]


@given(
    st.lists(st.floats(0, 5e6, allow_nan=False), min_size=2, max_size=8),
    st.integers(1, 64_000),
    st.integers(0, 50 * MICRO),
)
def test_charges_of_adjacent_spans_add_up_to_the_whole(times: list[float], gpu_milli: int, money: int) -> None:
    begin = at("2026-01-15")
    marks = [begin + one for one in sorted(times)]
    price = Price(weight_micro=1_234_567, money_micro=money)

    def total(since: float, until: float) -> dict[Unit, int]:
        parts = charges(price=price, gpu_milli=gpu_milli, planned_at=marks[0], since=since, until=until)
        return {unit: sum(part.amounts.get(unit, 0) for part in parts) for unit in Unit}

    pieces = [total(since, until) for since, until in pairwise(marks)]
    whole = total(marks[0], marks[-1])
    assert {unit: sum(piece[unit] for piece in pieces) for unit in Unit} == whole
    assert all(amount >= 0 for piece in pieces for amount in piece.values())


@given(st.integers(0, 10**15), st.floats(0, 1e6), st.floats(0.001, 1e6), st.floats(-1e6, 2e6))
def test_a_refund_is_never_more_than_the_charge(amount: int, since: float, length: float, lost_since: float) -> None:
    def refunded(lost_since: float) -> int:
        return lost_part(amount, planned_at=since, since=since, until=since + length, lost_since=lost_since)

    assert 0 <= refunded(lost_since) <= amount
    assert refunded(since) == amount
    assert refunded(since + length) == 0


@given(st.floats(0, 4e9), st.floats(0, 4e8))
def test_months_divide_a_span_without_a_gap(since: float, length: float) -> None:
    parts = list(months_between(since, since + length))
    ends = [since, *(end for _, end in parts)]
    assert [begin for begin, _ in parts] == ends[:-1]
    assert ends[-1] == (since + length if parts else since)


@pytest.mark.parametrize(
    ("values", "reason", "expected"),
    [
        ({}, EndReason.EXIT_CODE, False),
        ({}, EndReason.NODE_LOST, True),
        ({}, EndReason.GPU_FAILED, True),
        ({}, EndReason.LOST, True),
        ({}, EndReason.EVICTED, True),
        ({"stopping_for": EndReason.EVICTED}, EndReason.EXIT_CODE, False),
        ({"stopping_for": EndReason.STOPPED_BY_USER}, EndReason.NODE_LOST, False),
        ({"stopping_for": EndReason.PREEMPTED, "preempted_for": "j-9"}, EndReason.EXIT_CODE, True),
        ({"stopping_for": EndReason.PREEMPTED}, EndReason.EXIT_CODE, False),
        ({"stopping_for": EndReason.MOVED}, EndReason.EXIT_CODE, True),
        ({}, EndReason.TIMED_OUT, False),
    ],
)
def test_ends_by_the_platform(values: dict[str, Any], reason: EndReason, expected: bool) -> None:
    """An owner who requeues a job has not lost work by the platform's fault."""
    assert is_platform_end(running(1, {"n1": (0,)}, **values), reason) is expected


def test_work_is_saved_up_to_the_checkpoint_of_this_attempt() -> None:
    assert saved_until(running(1, {"n1": (0,)}), 50.0) == 50.0
    assert saved_until(running(1, {"n1": (0,)}, checkpointed_at=70.0), 50.0) == 70.0
    assert saved_until(running(1, {"n1": (0,)}, checkpointed_at=20.0), 50.0) == 50.0, "of an earlier attempt"


def test_a_budget_counts_entries_of_its_period_only() -> None:
    budget = Budget(account=ANN, unit=Unit.MONEY, period=Period.MONTH, hard_micro=10, begin=100.0, end=200.0)
    spent = budget.with_entry(99.0, -5).with_entry(100.0, -8).with_entry(150.0, 3).with_entry(200.0, -50)
    assert spent.spent_micro == 5
    assert not spent.holds_at(150.0)
    full = spent.with_entry(150.0, -5)
    assert full.holds_at(150.0)
    assert not full.holds_at(200.0), "in the next period nothing is spent yet"


@pytest.mark.parametrize(
    ("left", "spent", "period_end", "expected"),
    [
        (50, 100, None, 1050.0),
        (50, 100, 1040.0, None),
        (0, 100, None, 1000.0),
        (-5, 0, None, 1000.0),
        (50, 0, None, None),
    ],
)
def test_the_end_of_a_budget(left: int, spent: int, period_end: float | None, expected: float | None) -> None:
    assert budget_end(left, spent, 100.0, 1000.0, period_end) == expected


@pytest.mark.parametrize(
    ("text", "micro"),
    [("100", 100 * MICRO), ("12.50", 12_500_000), ("0.000001", 1), (" 3 ", 3 * MICRO), ("-2", -2 * MICRO)],
)
def test_amounts_are_read_exactly(text: str, micro: int) -> None:
    assert parse_micro(text) == micro


@pytest.mark.parametrize("text", ["", "ten", "0.0000001", "NaN", "inf", "1e40"])
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="amount"):
        parse_micro(text)


def test_amounts_are_written_with_two_places() -> None:
    assert amount_text(1_234_567_890) == "1,234.57"
    assert amount_text(-500_000) == "-0.50"


def test_an_attempt_is_charged_to_user_and_group() -> None:
    assert accounts_of("ann", None) == (ANN,)
    assert [str(one) for one in accounts_of("ann", "vision")] == ["user ann", "group vision"]
