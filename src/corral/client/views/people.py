"""People, what they may do and hold, and what they pick from, as the server shows them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class GroupView(TypedDict):
    name: str
    description: str
    pool: str | None
    users: list[str]
    users_count: int
    created_at: str


class FlavorView(TypedDict):
    name: str
    models: list[str]
    labels: dict[str, str]
    description: str
    gpus_total: int
    packages: list[str]
    created_at: str


class PackageView(TypedDict):
    name: str
    gpus: float
    cpus: float
    memory_bytes: int
    flavor: str | None
    models: list[str]
    rdma: bool
    kinds: list[str]
    description: str
    created_at: str
    available: bool | None
    queue: str | None
    free_count: int | None
    queued: int | None
    expected_wait_seconds: float | None


class HeldView(TypedDict):
    limit: float | None
    held: float


class KindQuotaView(TypedDict):
    gpus: HeldView
    cpus: HeldView
    memory_bytes: HeldView


class QuotaUsageView(TypedDict):
    user: str
    kinds: dict[str, KindQuotaView]
    volumes: dict[str, HeldView]


class MeView(TypedDict):
    name: str
    display_name: str
    email: str
    role: str
    group: str | None
    pool: str | None
    permission_group: str
    functions: list[str]
    provider: str
    must_change_password: bool
    limits: NotRequired[dict[str, Any]]
    quota: NotRequired[dict[str, QuotaView]]


class TokenView(TypedDict):
    id: str
    name: str
    scopes: list[str]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    token: NotRequired[str]


class UserView(TypedDict):
    name: str
    display_name: str
    email: str
    role: str
    disabled: bool
    group: str | None
    permission_group: str
    provider: str
    must_change_password: bool
    active_jobs: int
    created_at: str
    last_seen_at: str | None
    password: NotRequired[str]


class QuotaView(TypedDict):
    gpus: float | None
    cpus: float | None
    memory_bytes: int | None


class LoginView(TypedDict):
    user: str
    role: str
    token: str
    must_change_password: NotRequired[bool]


class PermissionGroupView(TypedDict):
    name: str
    functions: list[str]
    description: str
    users: list[str]
    users_count: int
    created_at: str


class SshKeyView(TypedDict):
    id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: str
