"""`corral budget`: what users and groups may spend, what they have spent, and prices of GPU time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.habits.habit_group import HabitGroup
from corral.cli.scheduling.queues import NO_LIMIT
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.hints import none_found
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.client.client import Client
    from corral.client.views import BudgetView, EntryView

app = typer.Typer(help="See budgets and statements; set limits, grants and prices (operators).", no_args_is_help=True)
price_app = typer.Typer(help="Manage prices of GPU time (operators).", no_args_is_help=True)
app.add_typer(price_app, name="price", cls=HabitGroup)

KINDS = ("user", "group")
UNITS = ("gpu-hours", "money")
STDOUT = "-"

AccountArgument = Annotated[
    str, typer.Argument(metavar="ACCOUNT", help="user/NAME or group/NAME; a name alone is a user.")
]
UnitOption = Annotated[str, typer.Option("--unit", metavar="gpu-hours|money", help="What the amounts count.")]


@command(app, "ls", examples=["corral budget ls", "corral budget ls -o json"])
def ls(terminal: Terminal) -> None:
    """List your budget and that of your group; operators see all."""
    with terminal.client() as client:
        found = list(client.budgets.list())
        currency = client.budgets.prices()["currency"]
    _table(terminal, found, currency, empty="No budgets. Operators set one: corral budget set group/NAME --hard 1000")


@command(app, "show", examples=["corral budget show", "corral budget show group/vision"])
def show(
    terminal: Terminal,
    account: Annotated[str | None, typer.Argument(metavar="ACCOUNT", help="Default: you.")] = None,
) -> None:
    """Show what an account may spend in this period, what it has spent, and how long the rest lasts."""
    with terminal.client() as client:
        kind, name = _own(client) if account is None else _account(account)
        found = client.budgets.get(kind, name)
        currency = client.budgets.prices()["currency"]
    if terminal.as_json:
        terminal.json({"items": list(found)})
        return
    if not found:
        terminal.say(f"{kind} {name} has no budget, and nothing was charged.")
    for view in found:
        terminal.facts(view, _facts(view, currency))


@command(
    app,
    "set",
    examples=[
        "corral budget set group/vision --hard 5000 --soft 4000",
        "corral budget set maria --unit money --period quarter --hard 1200.50",
        "corral budget set maria --hard none",
    ],
)
def set_budget(
    terminal: Terminal,
    account: AccountArgument,
    unit: UnitOption = "gpu-hours",
    period: Annotated[
        str | None, typer.Option(metavar="month|quarter|total", help="How often it begins anew.  [default: month]")
    ] = None,
    soft: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="The audit log shows when it is reached; none removes it.")
    ] = None,
    hard: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="No further job starts once it is spent; none removes it.")
    ] = None,
) -> None:
    """Set the limits of a user or group (operators). Limits that are not given stay; running jobs are not stopped."""
    kind, name = _account(account)
    if period is None and soft is None and hard is None:
        raise WrongUsage("nothing to set", hint="Give --soft, --hard or --period.")
    with terminal.client() as client:
        known = next(
            (budget for budget in client.budgets.get(kind, name) if budget["unit"] == unit and budget["is_limited"]),
            None,
        )
        limits: dict[str, Any] = {
            "unit": unit,
            "period": period or (known["period"] if known else "month"),
            "soft_micro": known["soft_micro"] if known else None,
            "hard_micro": known["hard_micro"] if known else None,
        }
        if soft is not None:
            limits["soft_micro"] = _limit("--soft", soft)
        if hard is not None:
            limits["hard_micro"] = _limit("--hard", hard)
        found = client.budgets.set(kind, name, limits)
    view = next(budget for budget in found if budget["unit"] == unit)
    terminal.answer(view, f"Budget of {kind} {name} in {unit} per {view['period']}: {_limits(view)}")


@command(app, "rm", examples=["corral budget rm group/vision", "corral budget rm maria --unit money --yes"])
def rm(terminal: Terminal, account: AccountArgument, unit: UnitOption = "gpu-hours", yes: YesOption = False) -> None:
    """Remove the limits of an account (operators). What was charged stays in its statements."""
    kind, name = _account(account)
    terminal.confirm(f"Remove the budget of {kind} {name} in {unit}?", assume_yes=yes)
    with terminal.client() as client:
        client.budgets.delete(kind, name, unit)
    terminal.answer({"kind": kind, "name": name, "unit": unit, "deleted": True}, f"Removed the budget of {kind} {name}")


@command(
    app,
    "grant",
    examples=["corral budget grant group/vision 500 --note deadline", "corral budget grant maria -- -20"],
)
def grant(
    terminal: Terminal,
    account: AccountArgument,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="A number such as 500 or 12.50.")],
    unit: UnitOption = "gpu-hours",
    note: Annotated[str, typer.Option(metavar="TEXT", help="Shown in the statement.")] = "",
) -> None:
    """Add an amount to an account in the present period (operators); a negative amount is taken back."""
    kind, name = _account(account)
    micro = _micro("AMOUNT", amount)
    with terminal.client() as client:
        entry = client.budgets.grant(kind, name, unit=unit, amount_micro=micro, note=note)
    terminal.answer(entry, f"Granted {_text(micro)} {unit} to {kind} {name}")


@command(
    app,
    "statement",
    examples=[
        "corral budget statement",
        "corral budget statement group/vision --since 2026-09-01T00:00:00Z --until 2026-10-01T00:00:00Z",
        "corral budget statement group/vision --unit money --format pdf -f september.pdf",
    ],
)
def statement(
    terminal: Terminal,
    account: Annotated[str | None, typer.Argument(metavar="ACCOUNT", help="Default: you.")] = None,
    unit: UnitOption = "gpu-hours",
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="RFC 3339; default: the begin of this month in UTC.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="RFC 3339; default: now.")] = None,
    form: Annotated[str | None, typer.Option("--format", metavar="csv|pdf", help="A file in place of a table.")] = None,
    file: Annotated[
        str | None, typer.Option("-f", "--file", metavar="FILE", help="Where to save it; - is the standard output.")
    ] = None,
) -> None:
    """Show what an account was charged, refunded and granted, one line per attempt."""
    if form not in (None, "csv", "pdf"):
        raise WrongUsage(f"--format: expected csv or pdf, got {form!r}")
    with terminal.client() as client:
        kind, name = _own(client) if account is None else _account(account)
        span = {"since": since, "until": until}
        if form is not None or file is not None:
            data = client.budgets.statement_file(kind, name, unit=unit, form=form or "csv", **span)
            _save(terminal, data, file or f"statement-{kind}-{name}-{unit}.{form or 'csv'}")
            return
        found = client.budgets.statement(kind, name, unit=unit, **span)
    if terminal.as_json:
        terminal.json(found)
        return
    terminal.table(
        ("AT", "ENTRY", "ATTEMPT", "JOB", "USER", "GPUS>", "MODEL?", "AMOUNT>", "NOTE~?"),
        found["items"],
        _entry,
        empty=f"Nothing was charged to {kind} {name} in this time.",
    )
    terminal.say(f"Balance: {_text(found['opening_micro'])} before, {_text(found['closing_micro'])} after")


@command(price_app, "ls", examples=["corral budget price ls"])
def price_ls(terminal: Terminal) -> None:
    """List the prices of GPU models. A model without one has weight 1 and costs no money."""
    with terminal.client() as client:
        found = client.budgets.prices()
        hint = "Set one: corral budget price set H200 --money 2.50 --currency EUR"
        empty = "" if terminal.as_json else none_found(client, found["items"], "No prices.", hint)
    terminal.table(
        ("MODEL", "WEIGHT>", f"PRICE PER HOUR{' IN ' + found['currency'] if found['currency'] else ''}>"),
        found["items"],
        lambda view: (view["model"], _text(view["weight_micro"]), _text(view["money_micro"])),
        empty=empty,
    )


@command(
    price_app,
    "set",
    examples=["corral budget price set H200 --weight 2 --money 2.50 --currency EUR"],
)
def price_set(
    terminal: Terminal,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A GPU model.")],
    weight: Annotated[str | None, typer.Option(metavar="N", help="GPU-hours that one hour counts for.")] = None,
    money: Annotated[str | None, typer.Option(metavar="AMOUNT", help="Price of one hour of one GPU.")] = None,
    currency: Annotated[str | None, typer.Option(metavar="NAME", help="The currency of all prices.")] = None,
) -> None:
    """Set the price of a GPU model, from now on (operators). A value that is not given stays."""
    if weight is None and money is None:
        raise WrongUsage("nothing to set", hint="Give --weight or --money.")
    with terminal.client() as client:
        known = next((price for price in client.budgets.prices()["items"] if price["model"] == model), None)
        body: dict[str, Any] = {"model": model, **(known or {})}
        if weight is not None:
            body["weight_micro"] = _positive("--weight", weight)
        if money is not None:
            body["money_micro"] = _positive("--money", money)
        if currency is not None:
            client.budgets.set_currency(currency)
        view = client.budgets.set_price(body)
    text = f"One hour of {model}: weight {_text(view['weight_micro'])}, price {_text(view['money_micro'])}"
    terminal.answer(view, text)


@command(price_app, "rm", examples=["corral budget price rm H200", "corral budget price rm H200 --yes"])
def price_rm(
    terminal: Terminal,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A GPU model.")],
    yes: YesOption = False,
) -> None:
    """Remove the price of a GPU model (operators): it has weight 1 and costs no money."""
    terminal.confirm(f"Remove the price of {model}?", assume_yes=yes)
    with terminal.client() as client:
        client.budgets.delete_price(model)
    terminal.answer({"model": model, "deleted": True}, f"Removed the price of {model}")


def _own(client: Client) -> tuple[str, str]:
    return "user", client.people.me()["name"]


def _account(text: str) -> tuple[str, str]:
    kind, slash, name = text.partition("/")
    if not slash:
        return "user", text
    if kind not in KINDS or not name:
        raise WrongUsage(f"expected user/NAME or group/NAME, got {text!r}")
    return kind, name


def _micro(flag: str, text: str) -> int:
    from corral.core.people.budgets import parse_micro

    try:
        return parse_micro(text)
    except ValueError as error:
        raise WrongUsage(f"{flag}: {error}") from error


def _limit(flag: str, text: str) -> int | None:
    return None if text == NO_LIMIT else _positive(flag, text)


def _positive(flag: str, text: str) -> int:
    micro = _micro(flag, text)
    if micro < 0:
        raise WrongUsage(f"{flag}: must be at least 0, got {text}")
    return micro


def _text(micro: int | None) -> str:
    from corral.core.people.budgets import amount_text

    return formats.NOTHING if micro is None else amount_text(micro)


def _limits(view: BudgetView) -> str:
    soft, hard = (_text(view[key]) if view[key] is not None else "none" for key in ("soft_micro", "hard_micro"))
    return f"soft limit {soft}, hard limit {hard}"


def _table(terminal: Terminal, found: Sequence[BudgetView], currency: str, *, empty: str) -> None:
    terminal.table(
        ("ACCOUNT", "UNIT", "PERIOD", "SPENT>", "SOFT>", "HARD>", "LEFT>", "ENDS"),
        found,
        lambda view: (
            f"{view['kind']}/{view['name']}",
            (currency or "money") if view["unit"] == "money" else view["unit"],
            view["period"],
            _text(view["spent_micro"]),
            _text(view["soft_micro"]),
            _text(view["hard_micro"]),
            _text(view["left_micro"]),
            formats.local_time(view["ends_at"]),
        ),
        empty=empty,
    )


def _facts(view: BudgetView, currency: str) -> list[tuple[str, str]]:
    over = view["left_micro"] is not None and view["left_micro"] <= 0
    until = f", until {formats.local_time(view['period_end'])}" if view["period_end"] else ""
    lasts = "over budget" if over else formats.local_time(view["ends_at"]) if view["ends_at"] else "lasts"
    return [
        ("Account", f"{view['kind']} {view['name']}"),
        ("Unit", (currency or "money") if view["unit"] == "money" else view["unit"]),
        ("Period", f"{view['period']}{until}"),
        ("Charged", _text(view["charged_micro"])),
        ("Refunded", _text(view["refunded_micro"])),
        ("Granted", _text(view["granted_micro"])),
        ("Spent", _text(view["spent_micro"])),
        ("Soft limit", _text(view["soft_micro"])),
        ("Hard limit", _text(view["hard_micro"])),
        ("Left", _text(view["left_micro"])),
        ("Ends", lasts if view["hard_micro"] is not None else formats.NOTHING),
        ("Balance", _text(view["balance_micro"])),
    ]


def _entry(view: EntryView) -> tuple[str, ...]:
    return (
        formats.local_time(view["at"]),
        view["kind"],
        view["attempt"] or formats.NOTHING,
        view["job_name"] or formats.NOTHING,
        view["user"] or view["actor"],
        formats.number(view["gpus"]),
        view["gpu_model"],
        _text(view["amount_micro"]),
        view["note"],
    )


def _save(terminal: Terminal, data: bytes, file: str) -> None:
    if file == STDOUT:
        sys.stdout.buffer.write(data)
        return
    Path(file).write_bytes(data)
    terminal.answer({"file": file, "bytes": len(data)}, f"Saved {file}")
