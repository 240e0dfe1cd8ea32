"""The routes of sign-in, tokens, users and the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.streams import Patience, follow_events
from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import (
        EventView,
        LoginView,
        MeView,
        NewTokenView,
        PermissionGroupView,
        SshKeyView,
        TokenView,
        UserView,
    )


class People:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def login(
        self,
        user: str,
        password: str,
        *,
        token_name: str,
        new_password: str | None = None,
        provider: str | None = None,
    ) -> LoginView:
        """`new_password` replaces the password. It is required to sign in with a one-time password. `provider` is the
        directory that checks the password."""
        body = {"user": user, "password": password, "token_name": token_name}
        if new_password is not None:
            body["new_password"] = new_password
        if provider is not None:
            body["provider"] = provider
        return cast("LoginView", self._transport.post("/auth/login", body))

    def logout(self) -> None:
        """End this session, or revoke this token."""
        self._transport.post("/auth/logout")

    def me(self) -> MeView:
        """The caller, with the caller's limits; for a session also its CSRF token."""
        return cast("MeView", self._transport.get("/me"))

    def edit_me(self, changes: Mapping[str, Any]) -> MeView:
        """Change the caller's own profile."""
        return cast("MeView", self._transport.patch("/me", dict(changes)))

    def change_password(self, *, old: str, new: str, revoke_tokens: bool = False) -> None:
        """`revoke_tokens` revokes all tokens of the user except the one of this client."""
        self._transport.post("/me/password", {"old": old, "new": new, "revoke_tokens": revoke_tokens})

    def tokens(self) -> Iterator[TokenView]:
        """The caller's tokens with name, scope and last use; secrets are never shown."""
        return self._transport.pages("/me/tokens")

    def create_token(
        self, name: str, *, scopes: Sequence[str] = (), expires_in_days: float | None = None
    ) -> NewTokenView:
        """Create a token. Only this answer contains the token itself."""
        body: dict[str, Any] = {"name": name}
        if scopes:
            body["scopes"] = list(scopes)
        if expires_in_days is not None:
            body["expires_in_days"] = expires_in_days
        return cast("NewTokenView", self._transport.post("/me/tokens", body))

    def delete_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._transport.delete(f"/me/tokens/{segment(token_id)}")

    def ssh_keys(self) -> Iterator[SshKeyView]:
        """The caller's SSH keys for workbenches."""
        return self._transport.pages("/me/ssh-keys")

    def add_ssh_key(self, name: str, public_key: str) -> SshKeyView:
        """Add a public key in OpenSSH's format: ed25519, ecdsa, rsa from 2048 bits, or of a security device."""
        return cast("SshKeyView", self._transport.post("/me/ssh-keys", {"name": name, "public_key": public_key}))

    def remove_ssh_key(self, key_id: str) -> None:
        """Delete a key."""
        self._transport.delete(f"/me/ssh-keys/{segment(key_id)}")

    def users(self, **filters: str | None) -> Iterator[UserView]:
        """Users that match every filter, with their numbers of jobs and GPUs."""
        return self._transport.pages("/users", filters)

    def user(self, name: str) -> UserView:
        """One user with role, group, quota and score."""
        return cast("UserView", self._transport.get(f"/users/{segment(name)}"))

    def create_user(self, name: str, *, in_no_group: bool = False, **values: Any) -> UserView:
        """`values` are fields of UserCreate; the server's defaults apply to those that are None."""
        given = {key: value for key, value in values.items() if value is not None}
        if in_no_group:
            given["group"] = None
        return cast("UserView", self._transport.post("/users", {"name": name, **given}))

    def edit_user(self, name: str, changes: Mapping[str, Any]) -> UserView:
        """Change a user."""
        return cast("UserView", self._transport.patch(f"/users/{segment(name)}", dict(changes)))

    def delete_user(self, name: str) -> None:
        """Delete a user without live jobs."""
        self._transport.delete(f"/users/{segment(name)}")

    def permission_groups(self) -> Iterator[PermissionGroupView]:
        """The permission groups with their rights and members."""
        return self._transport.pages("/permission-groups")

    def create_permission_group(self, body: Mapping[str, Any]) -> PermissionGroupView:
        """Create a permission group: rights that its members have."""
        return cast("PermissionGroupView", self._transport.post("/permission-groups", dict(body)))

    def edit_permission_group(self, name: str, changes: Mapping[str, Any]) -> PermissionGroupView:
        """Change the given fields."""
        return cast("PermissionGroupView", self._transport.patch(f"/permission-groups/{segment(name)}", dict(changes)))

    def assign_permission_group(self, name: str, users: Sequence[str]) -> PermissionGroupView:
        """Give users the rights of a permission group."""
        path = f"/permission-groups/{segment(name)}/users"
        return cast("PermissionGroupView", self._transport.post(path, {"users": list(users)}))

    def delete_permission_group(self, name: str) -> None:
        """Delete a permission group."""
        self._transport.delete(f"/permission-groups/{segment(name)}")


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
        text: str | None = None,
        limit: int | None = None,
    ) -> Iterator[EventView]:
        """Newest first."""
        params = {"actor": actor, "action": action, "subject": subject, "since": since, "until": until, "q": text}
        return self._transport.pages("/events", params, limit=limit)

    def export(self, form: str, **filters: str | None) -> Iterator[str]:
        """The audit log as csv or jsonl (`form`), in chunks."""
        return self._transport.stream_text("/events/export", {"format": form, **filters})

    def follow(self, *, after: int | None = None, patience: Patience | None = None) -> Iterator[EventView]:
        """Events as they happen, over restarts of the server."""
        start = "" if after is None else str(after)
        for event in follow_events(self._transport, "/stream", patience=patience or Patience(), last_event_id=start):
            view = json.loads(event.data)
            # the stream may carry other messages beside the audit events
            if isinstance(view, dict) and "action" in view:
                yield cast("EventView", view)
