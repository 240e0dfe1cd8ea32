"""Budgets of users and groups: limits, grants, statements, and prices of GPU time."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import Query, Response

from corral.control.errors import NotFound
from corral.control.live.unit_of_work import Caller
from corral.control.people import budgets
from corral.core.people.budgets import Account, AccountKind, Period, Price, Unit, period_at
from corral.reporting import pdf, statements
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.http import downloads
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.people.budgets import (
    BudgetPut,
    BudgetView,
    CurrencyPut,
    EntryView,
    GrantCreate,
    PricePut,
    PricesView,
    PriceView,
    StatementView,
    budget_view,
    grant_view,
    price_view,
    statement_view,
)

router = resource_router("", "budgets")

UnitQuery = Annotated[Unit, Query(description="gpu-hours or money")]
Since = Annotated[str | None, Query(description="RFC 3339; default: the begin of this month")]
Until = Annotated[str | None, Query(description="RFC 3339; default: now")]


@router.get("/prices", operation_id="list_prices", responses=problems())
async def list_prices(caller: AnyCaller, context: Context) -> PricesView:
    """The prices of GPU models. A model that is not listed has weight 1 and costs no money."""
    found = await context.read(lambda tables: (budgets.currency_of(tables), tables.budgets.prices()))
    return PricesView(currency=found[0], items=[price_view(model, price) for model, price in found[1].items()])


@router.put("/prices", operation_id="set_price", responses=problems(403))
async def set_price(body: PricePut, caller: Operator, context: Context) -> PriceView:
    """Set the price of a GPU model, from now on."""
    price = Price(weight_micro=body.weight_micro, money_micro=body.money_micro)
    await context.execute(budgets.set_price, caller, body.model, price)
    return price_view(body.model, price)


@router.delete("/prices", status_code=204, operation_id="delete_price", responses=problems(403, 404))
async def delete_price(model: str, caller: Operator, context: Context) -> Response:
    """Remove the price of a GPU model: its hours then have weight 1 and cost no money."""
    await context.execute(budgets.delete_price, caller, model)
    return Response(status_code=204)


@router.put("/prices/currency", operation_id="set_currency", responses=problems(403))
async def set_currency(body: CurrencyPut, caller: Operator, context: Context) -> CurrencyPut:
    """Name the currency of all prices."""
    return CurrencyPut(currency=await context.execute(budgets.set_currency, caller, body.currency))


@router.get("/budgets", operation_id="list_budgets", responses=problems())
async def list_budgets(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[BudgetView]:
    """Accounts with limits or entries: the caller's own and that of the caller's group; all of them for operators."""
    found = await context.read(budgets.statuses, caller, context.clock.now())
    page = page_of(
        found, key=lambda budget: (budget.account.kind, budget.account.name, budget.unit), limit=limit, cursor=cursor
    )
    return ListView(items=[budget_view(item) for item in page.items], next_cursor=page.next_cursor)


@router.get("/budgets/{kind}/{name}", operation_id="get_budget", responses=problems(403, 404))
async def get_budget(kind: AccountKind, name: str, caller: AnyCaller, context: Context) -> ListView[BudgetView]:
    """One account, in each unit that it has limits or entries in."""
    return ListView(items=await _shown(context, caller, Account(kind=kind, name=name)))


@router.put("/budgets/{kind}/{name}", operation_id="set_budget", responses=problems(403, 404))
async def set_budget(
    kind: AccountKind, name: str, body: BudgetPut, caller: Operator, context: Context
) -> ListView[BudgetView]:
    """Limit what an account may spend in each period. Running jobs are not stopped."""
    account = Account(kind=kind, name=name)
    await context.execute(
        budgets.set_budget,
        caller,
        account,
        body.unit,
        period=body.period,
        soft_micro=body.soft_micro,
        hard_micro=body.hard_micro,
    )
    return ListView(items=await _shown(context, caller, account))


@router.delete("/budgets/{kind}/{name}", status_code=204, operation_id="delete_budget", responses=problems(403, 404))
async def delete_budget(
    kind: AccountKind, name: str, caller: Operator, context: Context, unit: UnitQuery = Unit.GPU_HOURS
) -> Response:
    """Remove the limits of an account in one unit. Its entries stay."""
    await context.execute(budgets.delete_budget, caller, Account(kind=kind, name=name), unit)
    return Response(status_code=204)


@router.post(
    "/budgets/{kind}/{name}/grants", status_code=201, operation_id="create_grant", responses=problems(403, 404)
)
async def create_grant(
    kind: AccountKind, name: str, body: GrantCreate, caller: Operator, context: Context
) -> EntryView:
    """Add an amount to an account, in the present period."""
    account = Account(kind=kind, name=name)
    return grant_view(await context.execute(budgets.grant, caller, account, body.unit, body.amount_micro, body.note))


@router.get("/budgets/{kind}/{name}/statement", operation_id="get_statement", responses=problems(403))
async def get_statement(
    kind: AccountKind,
    name: str,
    caller: AnyCaller,
    context: Context,
    unit: UnitQuery = Unit.GPU_HOURS,
    since: Since = None,
    until: Until = None,
) -> StatementView:
    """The entries of an account in a span, one line per attempt, with the balance before and after them."""
    found, currency = await _statement(context, caller, Account(kind=kind, name=name), unit, since, until)
    return statement_view(found, currency)


@router.get(
    "/budgets/{kind}/{name}/statement/file",
    operation_id="get_statement_file",
    response_class=Response,
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/pdf": {"schema": {"type": "string", "format": "binary"}},
            },
            "description": "The statement.",
        },
        **problems(403, 404),
    },
)
async def get_statement_file(
    kind: AccountKind,
    name: str,
    caller: AnyCaller,
    context: Context,
    unit: UnitQuery = Unit.GPU_HOURS,
    since: Since = None,
    until: Until = None,
    format: Literal["csv", "pdf"] = "csv",
) -> Response:
    """The statement as CSV or PDF."""
    found, currency = await _statement(context, caller, Account(kind=kind, name=name), unit, since, until)
    file_name = f"statement-{kind}-{name}-{unit}.{format}"
    headers = downloads.attachment(file_name)
    if format == "csv":
        lines = await context.readers.call(caller.name, partial(statements.csv, found, currency))
        return Response(lines, media_type="text/csv; charset=utf-8", headers=headers)
    if not pdf.is_installed():
        raise NotFound("corral was installed without PDF: pip install 'corral[reports]'", field="format")
    now = context.clock.now()
    page = statements.document(found, currency, cluster=context.settings.cluster[0].name, now=now)
    drawn = await context.readers.call(caller.name, partial(pdf.render, page, made_at=now))
    return Response(drawn, media_type="application/pdf", headers=headers)


async def _shown(context: ServerContext, caller: Caller, account: Account) -> list[BudgetView]:
    found = await context.read(budgets.statuses_of, caller, account, context.clock.now())
    return [budget_view(budget) for budget in found]


async def _statement(
    context: ServerContext, caller: Caller, account: Account, unit: Unit, since: str | None, until: str | None
) -> tuple[budgets.Statement, str]:
    now = context.clock.now()
    begin, end = time_of("since", since), time_of("until", until)
    if begin is None:
        begin, _ = period_at(Period.MONTH, now if end is None else end)
    found = await context.read(budgets.statement, caller, account, unit, begin, now if end is None else end)
    return found, await context.read(budgets.currency_of)
