"""The routes of alerts, silences, alert rules and channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import AlertView, ChannelView, DeliveryView, RuleView, SignalView, SilenceView


class Alerts:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        states: Sequence[str] = (),
        severities: Sequence[str] = (),
        rule: str | None = None,
        subject: str | None = None,
        limit: int | None = None,
    ) -> Iterator[AlertView]:
        """Newest first."""
        params = {"state": list(states), "severity": list(severities), "rule": rule, "subject": subject}
        return self._transport.pages("/alerts", params, limit=limit)

    def get(self, alert_id: int) -> AlertView:
        """One alert with its subject, values, acknowledgement and notices."""
        return cast("AlertView", self._transport.get(f"/alerts/{alert_id}"))

    def acknowledge(self, alert_id: int, note: str = "") -> AlertView:
        """Mark the alert as being taken care of, until it is resolved."""
        return cast("AlertView", self._transport.post(f"/alerts/{alert_id}/acknowledge", {"note": note}))

    def silences(self) -> Iterator[SilenceView]:
        """Silences that are not over."""
        return self._transport.pages("/silences")

    def silence(self, body: Mapping[str, Any]) -> SilenceView:
        """Send no notices about matching alerts for a while."""
        return cast("SilenceView", self._transport.post("/silences", dict(body)))

    def unsilence(self, silence_id: str) -> None:
        """End a silence."""
        self._transport.delete(f"/silences/{segment(silence_id)}")

    def signals(self) -> Sequence[SignalView]:
        """The signals that rules can watch."""
        return cast("Sequence[SignalView]", self._transport.get("/alert-signals")["items"])

    def rules(self) -> Iterator[RuleView]:
        """All alert rules, built-in ones included, by name."""
        return self._transport.pages("/alert-rules")

    def rule(self, name: str) -> RuleView:
        """One alert rule."""
        return cast("RuleView", self._transport.get(_rule(name)))

    def create_rule(self, body: Mapping[str, Any]) -> RuleView:
        """Create an alert rule over one signal, with its threshold, duration, action and channels."""
        return cast("RuleView", self._transport.post("/alert-rules", dict(body)))

    def edit_rule(self, name: str, changes: Mapping[str, Any]) -> RuleView:
        """Change the given settings of a rule."""
        return cast("RuleView", self._transport.patch(_rule(name), dict(changes)))

    def reset_rule(self, name: str) -> RuleView:
        """Give a built-in rule its first settings again."""
        return cast("RuleView", self._transport.post(f"{_rule(name)}/reset"))

    def delete_rule(self, name: str) -> None:
        """Delete a rule of operators; a built-in one can be switched off."""
        self._transport.delete(_rule(name))


class Channels:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ChannelView]:
        """All channels, with the result of their latest notice; addresses are never shown."""
        return self._transport.pages("/channels")

    def create(self, body: Mapping[str, Any]) -> ChannelView:
        """Create a channel for notices."""
        return cast("ChannelView", self._transport.post("/channels", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> ChannelView:
        """The address is kept unless it is among the changes."""
        return cast("ChannelView", self._transport.patch(_channel(name), dict(changes)))

    def delete(self, name: str) -> None:
        """Delete a channel: no more notices are sent there."""
        self._transport.delete(_channel(name))

    def test(self, name: str) -> DeliveryView:
        """Send a test message, and return the delivery."""
        return cast("DeliveryView", self._transport.post(f"{_channel(name)}/test"))

    def deliveries(self, channel: str | None = None, *, limit: int | None = None) -> Iterator[DeliveryView]:
        """Newest first."""
        return self._transport.pages("/deliveries", {"channel": channel}, limit=limit)

    def resend(self, delivery_id: int) -> DeliveryView:
        """Try a notice that failed for good again, from the beginning."""
        return cast("DeliveryView", self._transport.post(f"/deliveries/{delivery_id}/resend"))


def _rule(name: str) -> str:
    return f"/alert-rules/{segment(name)}"


def _channel(name: str) -> str:
    return f"/channels/{segment(name)}"
