"""Budgets as values: prices of GPU time, the spending of an account in a period, and when a budget ends.

Amounts are integers in millionths of a GPU-hour or of the currency, so that sums never drift. An account is a user or
a group. Every attempt is charged to the account of its user and to that of the user's group; each kind of account is a
book of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from corral.core.copies import replace
from corral.core.model import WHOLE, EndReason, Job

#: A GPU-hour, or one unit of the currency, in millionths.
MICRO = 1_000_000
#: A larger amount is a typing mistake; also keeps every sum within a signed 64-bit column.
MAX_MICRO = 10**9 * MICRO
_HOUR_MS = 3_600_000

#: Ends that the platform has caused: work that was not saved is not charged. A preemption counts only if it was for
#: another job, because owners can requeue their own jobs.
BY_PLATFORM = frozenset({EndReason.NODE_LOST, EndReason.GPU_FAILED, EndReason.LOST, EndReason.MOVED, EndReason.RESIZED})


class AccountKind(StrEnum):
    USER = "user"
    GROUP = "group"


class Unit(StrEnum):
    GPU_HOURS = "gpu-hours"
    MONEY = "money"


class Period(StrEnum):
    MONTH = "month"
    QUARTER = "quarter"
    TOTAL = "total"


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    kind: AccountKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """The price of one hour of a whole GPU of one model. A model without a price has weight 1 and costs no money."""

    weight_micro: int = MICRO
    money_micro: int = 0

    def per_hour(self, unit: Unit) -> int:
        return self.weight_micro if unit is Unit.GPU_HOURS else self.money_micro


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The limits of an account in one unit, and what it has spent in the present period.

    `spent_micro` is charges less refunds and grants. At the soft limit the audit log gets a line; at the hard limit no
    further job of the account starts.
    """

    account: Account
    unit: Unit
    period: Period
    soft_micro: int | None = None
    hard_micro: int | None = None
    spent_micro: int = 0
    begin: float = 0.0
    #: None: the period does not end
    end: float | None = None

    def is_over_at(self, now: float) -> bool:
        """Whether another period has begun, in which nothing is spent yet."""
        return self.end is not None and now >= self.end

    def spent_at(self, now: float) -> int:
        return 0 if self.is_over_at(now) else self.spent_micro

    def holds_at(self, now: float) -> bool:
        """Whether the account may start no further job."""
        return self.hard_micro is not None and self.spent_at(now) >= self.hard_micro

    def with_entry(self, at: float, amount_micro: int) -> Budget:
        """The budget after an entry of this amount, if the entry is in the budget's period."""
        if at < self.begin or self.is_over_at(at):
            return self
        return replace(self, spent_micro=self.spent_micro - amount_micro)


def accounts_of(user: str, group: str | None) -> tuple[Account, ...]:
    own = Account(kind=AccountKind.USER, name=user)
    return (own,) if group is None else (own, Account(kind=AccountKind.GROUP, name=group))


# -------------------------------------------------------------------------------------------------------- periods


def period_at(period: Period, now: float) -> tuple[float, float | None]:
    """Begin and end of the period at that time, in UTC. The period `total` has neither."""
    if period is Period.TOTAL:
        return 0.0, None
    moment = datetime.fromtimestamp(now, UTC)
    months = 1 if period is Period.MONTH else 3
    first = (moment.month - 1) // months * months
    return _month(moment.year, first), _month(moment.year, first + months)


def months_between(since: float, until: float) -> Iterator[tuple[float, float]]:
    """The span, divided where a month begins: every part is in one month, and so in one period."""
    begin = since
    while begin < until:
        _, end = period_at(Period.MONTH, begin)
        assert end is not None
        yield begin, min(end, until)
        begin = end


def _month(year: int, month: int) -> float:
    """When a month begins; `month` counts from 0 and may be 12 or more."""
    return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()


# -------------------------------------------------------------------------------------------------------- charges


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """The cost of one attempt in a part of its time."""

    since: float
    until: float
    amounts: Mapping[Unit, int]


def charges(*, price: Price, gpu_milli: int, planned_at: float, since: float, until: float) -> list[Charge]:
    """The charges of an attempt for a span, one for each month. The charges of adjacent spans add up to that of the
    whole: each is the difference of two sums since the begin of the attempt."""

    def total(unit: Unit, at: float) -> int:
        return gpu_milli * _milliseconds(planned_at, at) * price.per_hour(unit) // (WHOLE * _HOUR_MS)

    parts = []
    for begin, end in months_between(since, until):
        amounts = {unit: total(unit, end) - total(unit, begin) for unit in Unit}
        # GPU-hours are charged also if they count for nothing: the entry shows that this time is settled.
        charged = {unit: amount for unit, amount in amounts.items() if amount or unit is Unit.GPU_HOURS}
        parts.append(Charge(since=begin, until=end, amounts=charged))
    return parts


def lost_part(amount_micro: int, *, planned_at: float, since: float, until: float, lost_since: float) -> int:
    """The part of a charge for a span that is refunded, because the work from `lost_since` on is lost. All of it is
    refunded if all of the span is lost."""
    if lost_since <= since:
        return amount_micro
    end = _milliseconds(planned_at, until)
    whole, lost = end - _milliseconds(planned_at, since), end - _milliseconds(planned_at, lost_since)
    return amount_micro * lost // whole if whole > 0 and lost > 0 else 0


def _milliseconds(planned_at: float, at: float) -> int:
    """The milliseconds from the start of the attempt until then."""
    return max(0, round((at - planned_at) * 1000))


def is_platform_end(job: Job, reason: EndReason) -> bool:
    """Whether the platform ended the job's attempt, which ends for `reason`."""
    if job.stopping_for is EndReason.PREEMPTED:
        return job.preempted_for is not None
    if job.stopping_for is None and reason in (EndReason.PREEMPTED, EndReason.EVICTED):
        return True
    return (job.stopping_for or reason) in BY_PLATFORM


def saved_until(job: Job, planned_at: float) -> float:
    """The time up to which the work of the job's attempt is saved."""
    return planned_at if job.checkpointed_at is None else max(planned_at, job.checkpointed_at)


# -------------------------------------------------------------------------------------------------------- forecast


def budget_end(left_micro: int, spent_micro: int, seconds: float, now: float, period_end: float | None) -> float | None:
    """The time at which the rest of a budget is spent, at the rate of the last `seconds`; None if it lasts for the
    period.
    """
    if left_micro <= 0:
        return now
    if spent_micro <= 0 or seconds <= 0:
        return None
    end = now + left_micro * seconds / spent_micro
    return None if period_end is not None and end >= period_end else end


# -------------------------------------------------------------------------------------------------------- texts


def parse_micro(text: str) -> int:
    """Millionths of a number such as 12.50. Raises ValueError."""
    try:
        value = Decimal(text.strip()) * MICRO
    except InvalidOperation:
        raise ValueError(f"{text!r} is not an amount: write a number such as 100 or 12.50") from None
    if not value.is_finite() or value != int(value) or abs(value) > MAX_MICRO:
        raise ValueError(f"an amount has at most 6 decimal places and is at most {MAX_MICRO // MICRO}, got {text!r}")
    return int(value)


def amount_text(amount_micro: int, places: int = 2) -> str:
    """Rounded toward the nearest value with so many decimal places."""
    return f"{Decimal(amount_micro) / MICRO:,.{places}f}"


def with_unit(amount_micro: int, unit: Unit) -> str:
    return f"{amount_text(amount_micro)} {'GPU-hours' if unit is Unit.GPU_HOURS else 'of money'}"
