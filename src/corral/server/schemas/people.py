"""People on the wire: sign-in, tokens, users and their quotas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.records import CredentialRecord, Role, UserRecord
from corral.core.model import WHOLE, Quota
from corral.server.schemas.base import Body, Label, Number, Text, View, number, rfc3339, rfc3339_or_none

#: Of any length that a person could mean; too short or too long ones are refused with the reason by the route.
Password = Annotated[Text, Field(min_length=1, max_length=1024)]
TokenName = Annotated[Text, Field(min_length=1, max_length=63)]


class LoginCreate(Body):
    user: Annotated[Text, Field(min_length=1, max_length=253)]
    password: Password
    token_name: TokenName | None = Field(default=None, description="Answer with a bearer token instead of a cookie.")


class LoginView(View):
    user: str
    role: Role
    must_change_password: bool
    csrf_token: str | None = Field(default=None, description="To be sent as X-CSRF-Token with every change.")
    token: str | None = None


class ProviderView(View):
    id: str


class LimitsView(View):
    """What holds for everybody; null means no limit."""

    max_gpus_per_user: int | None
    max_gpus_per_job: int | None
    max_total_gpus: int | None
    max_seconds: float | None


class QuotaView(View):
    """The most that a user may hold with jobs of one kind; null means no limit."""

    gpus: Number | None
    cpus: Number | None
    memory_bytes: int | None


class MeView(View):
    name: str
    role: Role
    must_change_password: bool
    csrf_token: str | None = None
    limits: LimitsView
    quota: dict[str, QuotaView]


class PasswordChange(Body):
    old: Password
    new: Password


class TokenCreate(Body):
    name: TokenName
    expires_in_days: Annotated[float, Field(gt=0, le=3650)] | None = None


class TokenView(View):
    id: str
    name: str
    created_at: str
    expires_at: str | None
    last_used_at: str | None


class NewTokenView(TokenView):
    token: str = Field(description="Shown this once; only a hash of it is kept.")


class UserCreate(Body):
    name: Label
    password: Password | None = None
    role: Literal["operator", "scientist"] | None = None


class UserEdit(Body):
    role: Literal["operator", "scientist"] | None = None
    disabled: bool | None = None
    password: Password | None = None


class UserView(View):
    name: str
    role: Role
    disabled: bool
    created_at: str


def quota_view(quota: Quota) -> QuotaView:
    return QuotaView(
        gpus=None if quota.gpu_milli is None else number(quota.gpu_milli / WHOLE),
        cpus=None if quota.cpu_milli is None else number(quota.cpu_milli / WHOLE),
        memory_bytes=quota.memory_bytes,
    )


def user_view(user: UserRecord) -> UserView:
    return UserView(name=user.name, role=user.role, disabled=user.disabled, created_at=rfc3339(user.created_at))


def token_view(token: CredentialRecord) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        created_at=rfc3339(token.created_at),
        expires_at=rfc3339_or_none(token.expires_at),
        last_used_at=rfc3339_or_none(token.last_used_at),
    )
