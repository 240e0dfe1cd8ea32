"""API schemas: budgets. Amounts are integers in millionths of a GPU-hour or of the currency."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.control.people.budgets import BudgetStatus, Statement, StatementLine, lines_of
from corral.control.records import EntryKind, LedgerEntry
from corral.core.model import WHOLE
from corral.core.people.budgets import MAX_MICRO, MICRO, AccountKind, Period, Price, Unit
from corral.server.schemas.base import Body, Label, Note, Number, View, number, rfc3339, rfc3339_or_none

Micro = Annotated[int, Field(ge=0, le=MAX_MICRO)]
UnitField = Annotated[Unit, Field(strict=False)]
PeriodField = Annotated[Period, Field(strict=False)]


class PricePut(Body):
    """The price of one hour of a whole GPU of a model, in millionths."""

    model: Label
    weight_micro: Micro = Field(default=MICRO, description="GPU-hours that one hour of this model counts for.")
    money_micro: Micro = 0


class CurrencyPut(Body):
    currency: Label = Field(description="Such as EUR; empty for none. Amounts are not converted.")


class PriceView(View):
    model: str
    weight_micro: int
    money_micro: int


class PricesView(View):
    currency: str
    items: list[PriceView]


class BudgetPut(Body):
    """The limits of an account in one unit; null means no limit."""

    unit: UnitField = Unit.GPU_HOURS
    period: PeriodField = Period.MONTH
    soft_micro: Micro | None = Field(default=None, description="At this amount the audit log gets a line.")
    hard_micro: Micro | None = Field(default=None, description="At this amount no further job of the account starts.")


class GrantCreate(Body):
    unit: UnitField = Unit.GPU_HOURS
    amount_micro: Annotated[int, Field(ge=-MAX_MICRO, le=MAX_MICRO)] = Field(
        description="Added to the account in the present period; a negative amount is taken back."
    )
    note: Note = ""


class BudgetView(View):
    """One account in one unit, with the amounts of the present period."""

    kind: AccountKind
    name: str
    unit: Unit
    period: Period
    period_begin: str | None
    period_end: str | None
    is_limited: bool = Field(description="false if the account has entries and no limits")
    soft_micro: int | None
    hard_micro: int | None
    granted_micro: int
    charged_micro: int
    refunded_micro: int
    spent_micro: int = Field(description="charges - refunds - grants of this period")
    left_micro: int | None = Field(description="Rest of the hard limit; null without one.")
    balance_micro: int = Field(description="grants - charges + refunds since the first entry")
    ends_at: str | None = Field(
        description="Time at which the hard limit is reached at the rate of the last seven days; null if it is not."
    )


class EntryView(View):
    """One line of a statement. Charges are negative; grants and refunds are positive."""

    kind: EntryKind
    at: str
    until: str | None
    amount_micro: int
    attempt: str | None
    user: str
    job_name: str
    gpu_model: str
    gpus: Number
    actor: str
    note: str


class StatementView(View):
    kind: AccountKind
    name: str
    unit: Unit
    currency: str
    since: str
    until: str
    opening_micro: int
    closing_micro: int
    items: list[EntryView]


def price_view(model: str, price: Price) -> PriceView:
    return PriceView(model=model, weight_micro=price.weight_micro, money_micro=price.money_micro)


def budget_view(status: BudgetStatus) -> BudgetView:
    is_total = status.end is None
    return BudgetView(
        kind=status.account.kind,
        name=status.account.name,
        unit=status.unit,
        period=status.period,
        period_begin=None if is_total else rfc3339(status.begin),
        period_end=rfc3339_or_none(status.end),
        is_limited=status.is_limited,
        soft_micro=status.soft_micro,
        hard_micro=status.hard_micro,
        granted_micro=status.granted_micro,
        charged_micro=status.charged_micro,
        refunded_micro=status.refunded_micro,
        spent_micro=status.spent_micro,
        left_micro=status.left_micro,
        balance_micro=status.balance_micro,
        ends_at=rfc3339_or_none(status.ends_at),
    )


def entry_view(line: StatementLine) -> EntryView:
    return EntryView(
        kind=line.kind,
        at=rfc3339(line.at),
        until=rfc3339_or_none(line.until),
        amount_micro=line.amount_micro,
        attempt=line.attempt_id,
        user=line.user,
        job_name=line.job_name,
        gpu_model=line.model,
        gpus=number(line.gpu_milli / WHOLE),
        actor=line.actor,
        note=line.note,
    )


def grant_view(entry: LedgerEntry) -> EntryView:
    (line,) = lines_of([entry])
    return entry_view(line)


def statement_view(statement: Statement, currency: str) -> StatementView:
    return StatementView(
        kind=statement.account.kind,
        name=statement.account.name,
        unit=statement.unit,
        currency=currency,
        since=rfc3339(statement.since),
        until=rfc3339(statement.until),
        opening_micro=statement.opening_micro,
        closing_micro=statement.closing_micro,
        items=[entry_view(line) for line in lines_of(statement.entries)],
    )
