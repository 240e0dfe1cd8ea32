"""The routes of quotas and of fair-share scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import QuotaUsageView, ScorePointView, ScoreView


class Quotas:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def mine(self) -> QuotaUsageView:
        """The caller's own quota, with the resources held."""
        return cast("QuotaUsageView", self._transport.get("/me/quota"))

    def get(self, user: str) -> QuotaUsageView:
        """A user's quota per job kind and type of volume; users may see their own."""
        return cast("QuotaUsageView", self._transport.get(f"/users/{segment(user)}/quota"))

    def list(self) -> Iterator[QuotaUsageView]:
        """The quotas of all users, with the resources held."""
        return self._transport.pages("/quotas")

    def edit(self, users: Sequence[str] | None, quota: Mapping[str, Any]) -> Sequence[QuotaUsageView]:
        """The same change for these users, or for all users if None; limits that are not named stay as they are."""
        whose: dict[str, Any] = {"all": True} if users is None else {"users": list(users)}
        answer = self._transport.post("/quotas:batch", {**whose, "quota": dict(quota)})
        return cast("Sequence[QuotaUsageView]", answer["items"])


class Scores:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ScoreView]:
        """The weighted usage behind the fair-share order."""
        return self._transport.pages("/scores")

    def history(
        self, user: str, *, model: str | None = None, since: str | None = None, points: int | None = None
    ) -> Iterator[ScorePointView]:
        """Oldest first, model by model."""
        params = {"model": model, "since": since, "points": points}
        answer = self._transport.get(f"/scores/{segment(user)}", params)
        return iter(cast("Sequence[ScorePointView]", answer["items"]))
