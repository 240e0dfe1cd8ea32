"""Budgets: prices of GPU time, limits of users and groups, grants, and statements of what was charged.

Accounting begins with the first price or budget and ends with the last one; only GPU time in between is charged. The
entries of the ledger stay. Charges themselves are made by `corral.control.live.changes.budget_changes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corral.control.errors import Forbidden, Invalid, NotFound
from corral.control.live.state import ACCOUNTING_SINCE, FOREVER, State, budget_now
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import BudgetRecord, EntryKind, LedgerEntry
from corral.core.people.budgets import (
    MAX_MICRO,
    Account,
    AccountKind,
    Period,
    Price,
    Unit,
    budget_end,
    period_at,
)
from corral.core.snapshot.changes import DropBudget, PutBudget

#: The named value of the store that has the currency of all prices.
CURRENCY = "currency"
NO_CURRENCY = ""
MAX_NOTE = 500
MAX_CURRENCY = 12
#: How often running attempts are charged.
SETTLE_SECONDS = 600.0
#: A forecast assumes that spending goes on as in the last seven days.
FORECAST_SECONDS = 7 * 86400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetStatus:
    """One account in one unit: limits, what was spent in the present period, and the balance of all entries."""

    account: Account
    unit: Unit
    #: the present month for an account without limits
    period: Period
    begin: float
    end: float | None
    soft_micro: int | None
    hard_micro: int | None
    granted_micro: int
    charged_micro: int
    refunded_micro: int
    #: grants - charges + refunds, since the first entry
    balance_micro: int
    #: when the hard limit is reached, if spending goes on as in the last seven days
    ends_at: float | None
    #: whether an operator has set limits
    is_limited: bool

    @property
    def spent_micro(self) -> int:
        return self.charged_micro - self.refunded_micro - self.granted_micro

    @property
    def left_micro(self) -> int | None:
        return None if self.hard_micro is None else self.hard_micro - self.spent_micro


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """The entries of an account in a span, with the balance before and after them."""

    account: Account
    unit: Unit
    since: float
    until: float
    opening_micro: int
    entries: tuple[LedgerEntry, ...]

    @property
    def closing_micro(self) -> int:
        return self.opening_micro + sum(entry.amount_micro for entry in self.entries)


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementLine:
    """One line of a statement: the charge or refund of an attempt, or a grant."""

    kind: EntryKind
    at: float
    until: float | None
    amount_micro: int
    attempt_id: str | None
    user: str
    job_name: str
    model: str
    gpu_milli: int
    actor: str
    note: str


def lines_of(entries: Sequence[LedgerEntry]) -> list[StatementLine]:
    """The charges of each attempt as one line, and so its refunds; grants one by one. In the order of their times."""
    together: dict[tuple[EntryKind, str], list[LedgerEntry]] = {}
    for entry in entries:
        together.setdefault((entry.kind, entry.attempt_id or entry.key), []).append(entry)
    lines = []
    for parts in together.values():
        first = parts[0]
        ends = [part.until for part in parts if part.until is not None]
        lines.append(
            StatementLine(
                kind=first.kind,
                at=min(part.at for part in parts),
                until=max(ends) if ends else None,
                amount_micro=sum(part.amount_micro for part in parts),
                attempt_id=first.attempt_id,
                user=first.user,
                job_name=first.job_name,
                model=first.model,
                gpu_milli=first.gpu_milli,
                actor=first.actor,
                note=first.note,
            )
        )
    return sorted(lines, key=lambda line: (line.at, line.attempt_id or ""))


# ---------------------------------------------------------------------------------------------------- changes


def set_price(work: Work, caller: Caller, model: str, price: Price) -> Price:
    """The price of one hour of a GPU of this model, from now on."""
    require_operator(caller, "set prices")
    if not model or len(model) > 100:
        raise Invalid("name a GPU model", field="model")
    for name, amount in (("weight_micro", price.weight_micro), ("money_micro", price.money_micro)):
        _check_amount(name, amount)
    _begin_accounting(work)
    settle(work)
    work.tx.budgets.save_price(model, price)
    work.state.prices[model] = price
    detail = {"weight_micro": price.weight_micro, "money_micro": price.money_micro}
    work.record(caller, "price.set", model, detail=detail)
    return price


def delete_price(work: Work, caller: Caller, model: str) -> None:
    """Deletes the price of a GPU model: from now on it has weight 1 and costs no money."""
    require_operator(caller, "set prices")
    if model not in work.tx.budgets.prices():
        raise NotFound(f"GPU model {model!r} has no price", field="model")
    settle(work)
    work.tx.budgets.delete_price(model)
    work.state.prices.pop(model, None)
    work.record(caller, "price.removed", model)
    _end_accounting(work)


def set_currency(work: Work, caller: Caller, currency: str) -> str:
    """The name of the currency that all prices are in. Amounts are not converted."""
    require_operator(caller, "set prices")
    if len(currency) > MAX_CURRENCY or not currency.isprintable():
        raise Invalid(f"a currency has at most {MAX_CURRENCY} characters, such as EUR", field="currency")
    work.tx.meta.put(CURRENCY, currency)
    work.record(caller, "price.currency-set", currency or "none")
    return currency


def set_budget(
    work: Work,
    caller: Caller,
    account: Account,
    unit: Unit,
    *,
    period: Period,
    soft_micro: int | None,
    hard_micro: int | None,
) -> BudgetRecord:
    """Limit what an account may spend in each period. What was charged in the present one counts."""
    require_operator(caller, "set budgets")
    check_account(work.tx, account)
    for name, amount in (("soft_micro", soft_micro), ("hard_micro", hard_micro)):
        if amount is not None:
            _check_amount(name, amount)
    if soft_micro is not None and hard_micro is not None and soft_micro > hard_micro:
        raise Invalid("the soft limit is above the hard limit", field="soft_micro")
    _begin_accounting(work)
    begin, _ = period_at(period, work.now)
    record = BudgetRecord(
        account=account, unit=unit, period=period, soft_micro=soft_micro, hard_micro=hard_micro, begin=begin
    )
    work.tx.budgets.save(record)
    # Entries of this transaction count too.
    work.budgets.flush()
    work.change(PutBudget(budget=budget_now(work.tx, record)))
    detail = {"unit": unit, "period": period, "soft_micro": soft_micro, "hard_micro": hard_micro}
    work.record(caller, "budget.set", str(account), owner=_owner(account), detail=detail)
    return record


def delete_budget(work: Work, caller: Caller, account: Account, unit: Unit) -> None:
    """Remove the limits of an account. Its entries stay."""
    require_operator(caller, "set budgets")
    if not any((record.account, record.unit) == (account, unit) for record in work.tx.budgets.all()):
        raise NotFound(f"{account} has no budget in {unit}", field="account")
    _drop(work, account, unit)
    work.record(caller, "budget.removed", str(account), owner=_owner(account), detail={"unit": unit})
    _end_accounting(work)


def grant(work: Work, caller: Caller, account: Account, unit: Unit, amount_micro: int, note: str) -> LedgerEntry:
    """Add an amount to an account, in the present period; a negative one takes it back."""
    require_operator(caller, "grant budgets")
    check_account(work.tx, account)
    if not amount_micro or abs(amount_micro) > MAX_MICRO:
        raise Invalid("a grant is an amount other than 0", field="amount_micro")
    if len(note) > MAX_NOTE:
        raise Invalid(f"a note has at most {MAX_NOTE} characters", field="note")
    number = int(work.tx.meta.get(_GRANTS) or 0) + 1
    work.tx.meta.put(_GRANTS, str(number))
    entry = LedgerEntry(
        key=f"grant:{number}",
        kind=EntryKind.GRANT,
        at=work.now,
        account=account,
        unit=unit,
        amount_micro=amount_micro,
        actor=caller.name,
        note=note,
    )
    work.budgets.post(entry)
    detail = {"unit": unit, "amount_micro": amount_micro, "note": note}
    work.record(caller, "budget.granted", str(account), owner=_owner(account), detail=detail)
    return entry


def settle(work: Work) -> None:
    """Charge all running attempts up to now, and begin new periods that are due."""
    if work.state.accounting_since is None:
        return
    for budget in list(work.state.snapshot.budgets.values()):
        work.budgets.rolled(budget)
    for attempt in list(work.state.attempts.values()):
        job = work.state.snapshot.jobs.get(attempt.job_id)
        if job is not None:
            work.budgets.settle(job, attempt)


def forget(work: Work, account: Account) -> None:
    """Remove the limits of a deleted user or group."""
    if work.state.accounting_since is None:
        return
    for unit in Unit:
        if (account, unit) in work.state.snapshot.budgets:
            _drop(work, account, unit)
    _end_accounting(work)


# ---------------------------------------------------------------------------------------------------- reads


def is_due(state: State, now: float, settled_at: float) -> bool:
    """Whether running attempts are to be charged: regularly, and when a period of a budget has ended."""
    if state.accounting_since is None:
        return False
    budgets = state.snapshot.budgets.values()
    return now - settled_at >= SETTLE_SECONDS or any(budget.is_over_at(now) for budget in budgets)


def currency_of(tx: Transaction) -> str:
    return tx.meta.get(CURRENCY) or NO_CURRENCY


def statuses(tx: Transaction, caller: Caller, now: float) -> list[BudgetStatus]:
    """Every account that has limits or entries and that the caller may see."""
    limited = {(record.account, record.unit): record for record in tx.budgets.all()}
    keys = [*limited, *(key for key in tx.budgets.accounts() if key not in limited)]
    visible = _visible_to(tx, caller)
    order = sorted(keys, key=lambda key: (key[0].kind is AccountKind.GROUP, key[0].name, key[1]))
    return [
        _status(tx, account, unit, limited.get((account, unit)), now)
        for account, unit in order
        if visible is None or account in visible
    ]


def statuses_of(tx: Transaction, caller: Caller, account: Account, now: float) -> list[BudgetStatus]:
    """The statuses of one account, in each unit that it has limits or entries in."""
    _check_visible(tx, caller, account)
    found = [status for status in statuses(tx, caller, now) if status.account == account]
    if not found:
        check_account(tx, account)
    return found


def statement(tx: Transaction, caller: Caller, account: Account, unit: Unit, since: float, until: float) -> Statement:
    _check_visible(tx, caller, account)
    if since >= until:
        raise Invalid("the span ends before it begins", field="since")
    return Statement(
        account=account,
        unit=unit,
        since=since,
        until=until,
        opening_micro=sum(tx.budgets.sums(account, unit, 0.0, since).values()),
        entries=tuple(tx.budgets.statement(account, unit, since, until)),
    )


def check_account(tx: Transaction, account: Account) -> None:
    known: Any = tx.people.users() if account.kind is AccountKind.USER else tx.people.groups()
    if account.name not in {account_budget.name for account_budget in known}:
        raise NotFound(f"there is no {account.kind} {account.name!r}", field="account")


# ---------------------------------------------------------------------------------------------------- inside

#: The named value of the store that counts grants.
_GRANTS = "grants"


def _status(tx: Transaction, account: Account, unit: Unit, record: BudgetRecord | None, now: float) -> BudgetStatus:
    period = Period.MONTH if record is None else record.period
    begin, end = period_at(period, now)
    sums = tx.budgets.sums(account, unit, begin, FOREVER if end is None else end)
    hard = None if record is None else record.hard_micro
    ends_at = None
    if hard is not None:
        since = max(begin, now - FORECAST_SECONDS)
        recent = tx.budgets.sums(account, unit, since, FOREVER)
        spent = -sum(amount for kind, amount in recent.items() if kind is not EntryKind.GRANT)
        ends_at = budget_end(hard + sum(sums.values()), spent, now - since, now, end)
    return BudgetStatus(
        account=account,
        unit=unit,
        period=period,
        begin=begin,
        end=end,
        soft_micro=None if record is None else record.soft_micro,
        hard_micro=hard,
        granted_micro=sums.get(EntryKind.GRANT, 0),
        charged_micro=-sums.get(EntryKind.CHARGE, 0),
        refunded_micro=sums.get(EntryKind.REFUND, 0),
        balance_micro=sum(tx.budgets.sums(account, unit, 0.0, FOREVER).values()),
        ends_at=ends_at,
        is_limited=record is not None,
    )


def _visible_to(tx: Transaction, caller: Caller) -> set[Account] | None:
    """The caller's own account and that of the caller's group; None for operators, who see all."""
    if caller.is_operator:
        return None
    group = next((user.group for user in tx.people.users() if user.name == caller.name), None)
    visible = {Account(kind=AccountKind.USER, name=caller.name)}
    return visible if group is None else visible | {Account(kind=AccountKind.GROUP, name=group)}


def _check_visible(tx: Transaction, caller: Caller, account: Account) -> None:
    visible = _visible_to(tx, caller)
    if visible is not None and account not in visible:
        raise Forbidden(f"{account} is not an account of {caller.name}")


def _begin_accounting(work: Work) -> None:
    if work.state.accounting_since is None:
        work.tx.meta.put(ACCOUNTING_SINCE, repr(work.now))
        work.state.accounting_since = work.now


def _end_accounting(work: Work) -> None:
    """Charge nothing any more after the last price and budget are removed."""
    if not work.state.prices and not work.state.snapshot.budgets:
        settle(work)
        work.tx.meta.put(ACCOUNTING_SINCE, "")
        work.state.accounting_since = None


def _drop(work: Work, account: Account, unit: Unit) -> None:
    work.tx.budgets.delete(account, unit)
    work.change(DropBudget(account=account, unit=unit))


def _owner(account: Account) -> str:
    return account.name if account.kind is AccountKind.USER else ""


def _check_amount(field: str, amount: int) -> None:
    if not 0 <= amount <= MAX_MICRO:
        raise Invalid(f"{field} is between 0 and {MAX_MICRO}", field=field)
