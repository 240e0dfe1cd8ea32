"""The routes of budgets and prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import BudgetView, EntryView, PricesView, PriceView, StatementView


class Budgets:
    """`kind` is user or group. Amounts are integers in millionths of a GPU-hour or of the currency."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[BudgetView]:
        """Accounts with limits or entries: the caller's own and that of the caller's group; all of them for
        operators."""
        return self._transport.pages("/budgets")

    def get(self, kind: str, name: str) -> Sequence[BudgetView]:
        """The budget of an account: limits, what was spent, and how long the rest lasts."""
        return cast("Sequence[BudgetView]", self._transport.get(_path(kind, name))["items"])

    def set(self, kind: str, name: str, limits: Mapping[str, Any]) -> Sequence[BudgetView]:
        """Set the limits of an account."""
        return cast("Sequence[BudgetView]", self._transport.put(_path(kind, name), dict(limits))["items"])

    def delete(self, kind: str, name: str, unit: str) -> None:
        """Remove the limits of an account; its entries stay."""
        self._transport.delete(_path(kind, name), {"unit": unit})

    def grant(self, kind: str, name: str, *, unit: str, amount_micro: int, note: str = "") -> EntryView:
        """Add an amount to an account in the present period; a negative amount is taken back."""
        body = {"unit": unit, "amount_micro": amount_micro, "note": note}
        return cast("EntryView", self._transport.post(f"{_path(kind, name)}/grants", body))

    def statement(
        self, kind: str, name: str, *, unit: str, since: str | None = None, until: str | None = None
    ) -> StatementView:
        """The entries of an account in a span, with the balance before and after."""
        params = {"unit": unit, "since": since, "until": until}
        return cast("StatementView", self._transport.get(f"{_path(kind, name)}/statement", params))

    def statement_file(
        self, kind: str, name: str, *, unit: str, form: str, since: str | None = None, until: str | None = None
    ) -> bytes:
        """The statement as the text of a file."""
        params = {"unit": unit, "since": since, "until": until, "format": form}
        return self._transport.get_bytes(f"{_path(kind, name)}/statement/file", params)

    def prices(self) -> PricesView:
        """The prices of GPU models."""
        return cast("PricesView", self._transport.get("/prices"))

    def set_price(self, price: Mapping[str, Any]) -> PriceView:
        """Set the price of a GPU model, from now on."""
        return cast("PriceView", self._transport.put("/prices", dict(price)))

    def delete_price(self, model: str) -> None:
        """Remove the price of a GPU model: its hours then have weight 1 and cost no money."""
        self._transport.delete("/prices", {"model": model})

    def set_currency(self, currency: str) -> None:
        """Name the currency of all prices."""
        self._transport.put("/prices/currency", {"currency": currency})


def _path(kind: str, name: str) -> str:
    return f"/budgets/{segment(kind)}/{segment(name)}"
