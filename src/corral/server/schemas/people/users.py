"""API schemas: people: sign-in, tokens, users and their quotas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from corral.control.records import DEFAULT_GROUP, EVERYONE, CredentialRecord, Function, Role, Scope, UserRecord
from corral.core.model import WHOLE
from corral.core.people.password_rules import MAX_LENGTH, MIN_LENGTH
from corral.core.people.quota import Quota
from corral.server.schemas.base import Body, Label, Number, Text, View, number, rfc3339, rfc3339_or_none

#: Passwords that are too short or too long are refused by the route, with the reason.
Password = Annotated[Text, Field(min_length=1, max_length=1024)]
#: the use case checks it, so that the refusal is the same wherever a password is chosen
NewPassword = Annotated[Password, WithJsonSchema({"type": "string", "minLength": MIN_LENGTH, "maxLength": MAX_LENGTH})]
TokenName = Annotated[Text, Field(min_length=1, max_length=63)]
DisplayName = Annotated[Text, Field(max_length=100)]
Email = Annotated[Text, Field(max_length=254)]


class LoginCreate(Body):
    user: Annotated[Text, Field(min_length=1, max_length=253)]
    password: Password
    provider: Label | None = Field(
        default=None, description="The directory (a provider of the kind `ldap`) that checks the password."
    )
    token_name: TokenName | None = Field(default=None, description="Answer with a bearer token instead of a cookie.")
    new_password: NewPassword | None = Field(
        default=None, description="Replaces the password, for example a one-time password."
    )


class LoginView(View):
    user: str
    role: Role
    must_change_password: bool
    csrf_token: str | None = Field(default=None, description="Send it in the header X-CSRF-Token with every change.")
    token: str | None = None


class LimitsView(View):
    """Limits for all users; null means no limit."""

    max_gpus_per_user: int | None
    max_gpus_per_job: int | None
    max_total_gpus: int | None
    max_seconds: float | None
    smallest_share: float = Field(description="The smallest share of a GPU that a job may ask for.")


class QuotaView(View):
    """Limits on the resources that a user's jobs of one kind may hold; null means no limit."""

    gpus: Number | None
    cpus: Number | None
    memory_bytes: int | None


class MeView(View):
    name: str
    display_name: str
    email: str
    role: Role
    group: str | None
    pool: str | None
    permission_group: str
    functions: list[Function] = Field(description="Functions that the caller may use; operators may use all.")
    provider: str
    must_change_password: bool
    csrf_token: str | None = None
    event_id: int = Field(
        description="Id of the newest event before this answer; a stream that begins there has all that happened since."
    )
    limits: LimitsView
    quota: dict[str, QuotaView]


class ProfileEdit(Body):
    display_name: DisplayName | None = None
    email: Email | None = None


class PasswordChange(Body):
    old: Password
    new: NewPassword
    revoke_tokens: bool = Field(
        default=False, description="Revoke all tokens of the user except the one of this request."
    )


class TokenCreate(Body):
    name: TokenName
    scopes: Annotated[list[Literal["read", "jobs", "full"]], Field(min_length=1, max_length=3)] = Field(
        default=["full"], description="Scope: read; read and change jobs and tasks; everything."
    )
    expires_in_days: Annotated[float, Field(gt=0, le=3650)] | None = None


class TokenView(View):
    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    expires_at: str | None
    last_used_at: str | None


class NewTokenView(TokenView):
    token: str = Field(description="Shown only once; only a hash is stored.")


class UserCreate(Body):
    name: Label
    password: NewPassword | None = None
    role: Literal["operator", "scientist"] | None = None
    group: Label | None = Field(default=DEFAULT_GROUP, description="null means no group, and so no pool of a group.")
    permission_group: Label = EVERYONE
    display_name: DisplayName = ""
    email: Email = ""


class UserEdit(Body):
    role: Literal["operator", "scientist"] | None = None
    disabled: bool | None = None
    password: NewPassword | None = None
    permission_group: Label | None = None
    display_name: DisplayName | None = None
    email: Email | None = None


class UserView(View):
    name: str
    display_name: str
    email: str
    role: Role
    disabled: bool
    group: str | None
    permission_group: str
    provider: str
    must_change_password: bool
    active_jobs: int = Field(description="Jobs that wait or run.")
    created_at: str
    last_seen_at: str | None = Field(description="Precise to the minute; null if never, or not since signing out.")


def quota_view(quota: Quota) -> QuotaView:
    return QuotaView(
        gpus=None if quota.gpu_milli is None else number(quota.gpu_milli / WHOLE),
        cpus=None if quota.cpu_milli is None else number(quota.cpu_milli / WHOLE),
        memory_bytes=quota.memory_bytes,
    )


def user_view(user: UserRecord, *, active_jobs: int = 0) -> UserView:
    return UserView(
        name=user.name,
        display_name=user.display_name,
        email=user.email,
        role=user.role,
        disabled=user.disabled,
        group=user.group,
        permission_group=user.permission_group,
        provider=user.provider,
        must_change_password=user.must_change_password,
        active_jobs=active_jobs,
        created_at=rfc3339(user.created_at),
        last_seen_at=rfc3339_or_none(user.last_seen_at),
    )


def token_view(token: CredentialRecord) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        scopes=list(token.scopes),
        created_at=rfc3339(token.created_at),
        expires_at=rfc3339_or_none(token.expires_at),
        last_used_at=rfc3339_or_none(token.last_used_at),
    )
