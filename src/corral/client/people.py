"""The routes of sign-in, tokens, users, quotas and the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from corral.client.following import Patience, follow_events
from corral.client.transport import Transport, segment
from corral.client.views import EventView, LoginView, MeView, QuotaView, TokenView, UserView


class People:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def login(self, user: str, password: str, *, token_name: str) -> LoginView:
        body = {"user": user, "password": password, "token_name": token_name}
        return cast(LoginView, self._transport.post("/auth/login", body))

    def logout(self) -> None:
        self._transport.post("/auth/logout")

    def me(self) -> MeView:
        return cast(MeView, self._transport.get("/me"))

    def change_password(self, *, old: str, new: str) -> None:
        self._transport.post("/me/password", {"old": old, "new": new})

    def tokens(self) -> Iterator[TokenView]:
        return self._transport.pages("/me/tokens")

    def create_token(self, name: str, *, expires_in_days: int | None = None) -> TokenView:
        """The only answer that ever shows the token itself."""
        body: dict[str, Any] = {"name": name}
        if expires_in_days is not None:
            body["expires_in_days"] = expires_in_days
        return cast(TokenView, self._transport.post("/me/tokens", body))

    def delete_token(self, token_id: str) -> None:
        self._transport.delete(f"/me/tokens/{segment(token_id)}")

    def users(self) -> Iterator[UserView]:
        return self._transport.pages("/users")

    def create_user(self, name: str, *, password: str | None = None, role: str | None = None) -> UserView:
        body = {"name": name, "password": password, "role": role}
        return cast(UserView, self._transport.post("/users", {k: v for k, v in body.items() if v is not None}))

    def edit_user(self, name: str, changes: Mapping[str, Any]) -> UserView:
        return cast(UserView, self._transport.patch(f"/users/{segment(name)}", dict(changes)))

    def delete_user(self, name: str) -> None:
        self._transport.delete(f"/users/{segment(name)}")

    def quota(self, user: str) -> dict[str, QuotaView]:
        """By job kind."""
        return cast(dict[str, QuotaView], self._transport.get(f"/users/{segment(user)}/quota"))

    def set_quota(self, user: str, quota: Mapping[str, Any]) -> dict[str, QuotaView]:
        return cast(dict[str, QuotaView], self._transport.put(f"/users/{segment(user)}/quota", dict(quota)))


class Events:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> Iterator[EventView]:
        """Newest first."""
        params = {"actor": actor, "action": action, "subject": subject, "since": since, "until": until}
        return self._transport.pages("/events", params, limit=limit)

    def follow(self, *, after: int | None = None, patience: Patience | None = None) -> Iterator[EventView]:
        """Events as they happen, over restarts of the server."""
        start = "" if after is None else str(after)
        for event in follow_events(self._transport, "/stream", patience=patience or Patience(), last_event_id=start):
            view = json.loads(event.data)
            # the stream may carry notes of its own beside the audit events
            if isinstance(view, dict) and "action" in view:
                yield cast(EventView, view)
