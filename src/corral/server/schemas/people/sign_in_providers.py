"""Sign-in providers and the people whom they know, on the wire. Secrets only ever come in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.people.sign_in_providers import is_allowed
from corral.control.records import LOCAL_PROVIDER, IdentityRecord, ProviderRecord
from corral.server.auth.kinds.provider_kind import Check
from corral.server.schemas.base import Body, Label, Text, View, rfc3339

Title = Annotated[Text, Field(max_length=63)]
Address = Annotated[Text, Field(max_length=1000)]
Secret = Annotated[Text, Field(max_length=4096, description="Kept encrypted and never shown again.")]
AllowList = Annotated[
    list[Label],
    Field(max_length=1000, description="Logins, e-mail addresses, @domains, or * for everybody the provider knows."),
]
GroupName = Annotated[Label | None, Field(description="Where newcomers are put; null means in no group.")]


class ProviderView(View):
    """A way to sign in, for everybody."""

    id: str
    kind: str
    title: str
    login_url: str = Field(description="Where a browser goes to sign in.")


class ProviderDetailView(View):
    """A provider as operators see it."""

    id: str
    kind: str
    title: str
    issuer: str
    client_id: str
    client_secret_set: bool
    api_token_set: bool
    organisation: str
    enabled: bool
    allow: list[str]
    group: str | None
    redirect_uri: str = Field(description="What the provider must know as the address to send people back to.")
    users: int = Field(description="Users who come from it.")
    created_at: str


class ProviderCreate(Body):
    id: Label
    kind: Literal["github", "gitlab", "oidc"]
    title: Title = ""
    issuer: Address = Field(default="", description="Its address; github.com and gitlab.com need none.")
    client_id: Label
    client_secret: Secret = ""
    enabled: bool = False
    allow: AllowList = Field(default_factory=list)
    group: GroupName = "default"
    organisation: Label = Field(default="", description="A GitHub organisation or GitLab group to list members of.")
    api_token: Secret = ""


class ProviderEdit(Body):
    """What is left out stays as it is, the secrets too; null forgets a secret."""

    title: Title = ""
    issuer: Address = ""
    client_id: Label = ""
    client_secret: Secret | None = None
    enabled: bool = False
    allow: AllowList = Field(default_factory=list)
    group: GroupName = None
    organisation: Label = ""
    api_token: Secret | None = None


class CheckView(View):
    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    hint: str = Field(description="What to do about it.")


class ProviderTestView(View):
    ok: bool
    checks: list[CheckView]


class IdentityView(View):
    """Somebody whom a provider knows."""

    provider: str
    subject: str
    login: str
    name: str
    email: str
    user: str | None = Field(description="The user, once on-boarded.")
    allowed: bool = Field(description="The allow-list names them: they come in at their next sign-in.")
    seen_at: str | None = Field(description="When they last signed in, or tried to.")


class OnboardCreate(Body):
    provider: Label
    subjects: Annotated[list[Annotated[Text, Field(max_length=255)]], Field(min_length=1, max_length=1000)]
    group: GroupName = "default"


def local_view() -> ProviderView:
    return ProviderView(id=LOCAL_PROVIDER, kind=LOCAL_PROVIDER, title="Password", login_url="/")


def provider_view(provider: ProviderRecord, login_url: str) -> ProviderView:
    return ProviderView(id=provider.id, kind=provider.kind.value, title=provider.title, login_url=login_url)


def provider_detail_view(provider: ProviderRecord, *, users: int, redirect_uri: str) -> ProviderDetailView:
    return ProviderDetailView(
        id=provider.id,
        kind=provider.kind.value,
        title=provider.title,
        issuer=provider.issuer,
        client_id=provider.client_id,
        client_secret_set=bool(provider.client_secret),
        api_token_set=bool(provider.api_token),
        organisation=provider.organisation,
        enabled=provider.enabled,
        allow=list(provider.allow),
        group=provider.group,
        redirect_uri=redirect_uri,
        users=users,
        created_at=rfc3339(provider.created_at),
    )


def identity_view(provider: ProviderRecord, identity: IdentityRecord) -> IdentityView:
    return IdentityView(
        provider=identity.provider,
        subject=identity.subject,
        login=identity.login,
        name=identity.name,
        email=identity.email,
        user=identity.user,
        allowed=is_allowed(provider, identity),
        seen_at=rfc3339(identity.seen_at) if identity.seen_at else None,
    )


def check_view(check: Check) -> CheckView:
    return CheckView(name=check.name, state=check.state, detail=check.detail, hint=check.hint)
