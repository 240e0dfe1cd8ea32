"""API schemas: sign-in providers and their accounts. Secrets are accepted, but never returned."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corral.control.people.sign_in_providers import is_allowed
from corral.control.records import LOCAL_PROVIDER, IdentityRecord, ProviderRecord
from corral.server.auth.kinds.provider_kind import Check
from corral.server.schemas.base import Body, Label, Text, View, rfc3339
from corral.server.schemas.people.directories import LdapSettingsBody, LdapSettingsView, ldap_settings_view

Title = Annotated[Text, Field(max_length=63)]
Address = Annotated[Text, Field(max_length=1000)]
Secret = Annotated[Text, Field(max_length=4096, description="Stored encrypted and never shown again.")]
AllowList = Annotated[
    list[Label],
    Field(max_length=1000, description="Logins, e-mail addresses, @domains, or * for all accounts of the provider."),
]
ClientId = Annotated[Text, Field(max_length=1000, description="The client id; of a directory its service account.")]
GroupsClaim = Annotated[
    Label,
    Field(
        description="The claim with the groups of a person; dots lead into objects (`realm_access.roles`). Of a "
        "directory the attribute with them. Empty for the usual one: `groups`, or `memberOf`."
    ),
]
GroupRules = Annotated[
    list[Text],
    Field(
        max_length=1000,
        description="`GROUP-OF-THE-PROVIDER=GROUP`, or `…=@operator`: the group and the role of a person, decided at "
        "each sign-in. Members of these groups may sign in.",
    ),
]
GroupName = Annotated[Label | None, Field(description="Group of new users; null means no group.")]


class ProviderView(View):
    """A sign-in provider, as it is shown before sign-in."""

    id: str
    kind: str
    title: str
    login_url: str = Field(
        description="Address that a browser opens to sign in. For passwords and directories it is the console."
    )


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
    groups_claim: str
    group_rules: list[str]
    redirect_uri: str = Field(description="The redirect address to register with the provider.")
    directory: LdapSettingsView | None = Field(description="The settings of a directory; null for other kinds.")
    users: int = Field(description="Number of users of this provider.")
    has_operator: bool = Field(description="An operator has signed in with this provider.")
    created_at: str


class ProviderCreate(Body):
    id: Label
    kind: Literal["github", "gitlab", "oidc", "ldap"]
    title: Title = ""
    issuer: Address = Field(default="", description="The provider's address; not needed for github.com and gitlab.com.")
    client_id: ClientId = ""
    client_secret: Secret = ""
    enabled: bool = False
    allow: AllowList = Field(default_factory=list)
    group: GroupName = "default"
    groups_claim: GroupsClaim = ""
    group_rules: GroupRules = Field(default_factory=list)
    organisation: Label = Field(
        default="", description="A GitHub organisation or GitLab group whose members are listed."
    )
    api_token: Secret = ""
    directory: LdapSettingsBody | None = Field(default=None, description="For the kind `ldap` only.")


class ProviderEdit(Body):
    """Fields that are left out keep their values, the secrets too; null removes a secret."""

    title: Title = ""
    issuer: Address = ""
    client_id: ClientId = ""
    client_secret: Secret | None = None
    enabled: bool = False
    allow: AllowList = Field(default_factory=list)
    group: GroupName = None
    groups_claim: GroupsClaim = ""
    group_rules: GroupRules = Field(default_factory=list)
    organisation: Label = ""
    api_token: Secret | None = None
    directory: LdapSettingsBody | None = Field(default=None, description="The changed settings of a directory.")


class CheckView(View):
    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    hint: str = Field(description="Advice for fixing the problem.")


class ProviderTestView(View):
    ok: bool
    checks: list[CheckView]


class IdentityView(View):
    """An account of a provider."""

    provider: str
    subject: str
    login: str
    name: str
    email: str
    user: str | None = Field(description="The user, once the account is on-boarded.")
    allowed: bool = Field(description="The allow-list contains the account: the next sign-in creates the user.")
    seen_at: str | None = Field(description="Time of the last sign-in or of the last attempt.")


class OnboardCreate(Body):
    provider: Label
    subjects: Annotated[list[Annotated[Text, Field(max_length=255)]], Field(min_length=1, max_length=1000)]
    group: GroupName = "default"
    operators: Annotated[list[Annotated[Text, Field(max_length=255)]], Field(max_length=1000)] = Field(
        default_factory=list, description="Subjects that become operators; the others become scientists."
    )


def local_view() -> ProviderView:
    return ProviderView(id=LOCAL_PROVIDER, kind=LOCAL_PROVIDER, title="Password", login_url="/")


def provider_view(provider: ProviderRecord, login_url: str) -> ProviderView:
    return ProviderView(id=provider.id, kind=provider.kind.value, title=provider.title, login_url=login_url)


def provider_detail_view(
    provider: ProviderRecord, *, users: int, has_operator: bool, redirect_uri: str
) -> ProviderDetailView:
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
        groups_claim=provider.groups_claim,
        group_rules=list(provider.group_rules),
        redirect_uri=redirect_uri,
        directory=ldap_settings_view(provider.directory),
        users=users,
        has_operator=has_operator,
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
