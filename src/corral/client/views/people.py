"""Users, groups, permissions, quotas, tokens, sign-in and the audit log.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict


class Assignment(TypedDict):
    users: list[str]


class GroupCreate(TypedDict):
    name: str
    description: NotRequired[str]
    pool: NotRequired[str | None]
    #: Users who are in no group.
    users: NotRequired[list[str]]


class GroupEdit(TypedDict):
    add_users: NotRequired[list[str]]
    description: NotRequired[str | None]
    #: Leave the group that they are in for this one, at once.
    move_users: NotRequired[list[str]]
    #: Null detaches the pool; left out, it stays.
    pool: NotRequired[str | None]
    remove_users: NotRequired[list[str]]


class GroupView(TypedDict):
    name: str
    description: str
    pool: str | None
    users: list[str]
    users_count: int
    created_at: str


class EventView(TypedDict):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    source: str


class IdentityView(TypedDict):
    """Somebody whom a provider knows."""

    provider: str
    subject: str
    login: str
    name: str
    email: str
    #: The user, once on-boarded.
    user: str | None
    #: The allow-list names them: they come in at their next sign-in.
    allowed: bool
    #: When they last signed in, or tried to.
    seen_at: str | None


#: What a permission group can allow. Operators may do everything.
Function = Literal[
    "train", "distribute", "workbench", "tasks", "volumes", "datasets", "images", "see-others-jobs", "tokens"
]


class PermissionGroupView(TypedDict):
    name: str
    functions: list[Function]
    description: str
    users: list[str]
    users_count: int
    created_at: str


class ProviderDetailView(TypedDict):
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
    #: What the provider must know as the address to send people back to.
    redirect_uri: str
    #: Users who come from it.
    users: int
    created_at: str


class ProviderView(TypedDict):
    """A way to sign in, for everybody."""

    id: str
    kind: str
    title: str
    #: Where a browser goes to sign in.
    login_url: str


class HeldView(TypedDict):
    #: null means no limit
    limit: float | None
    #: By everything unfinished, what waits included.
    held: float


class KindQuotaView(TypedDict):
    gpus: HeldView
    cpus: HeldView
    memory_bytes: HeldView


class QuotaUsageView(TypedDict):
    user: str
    kinds: dict[str, KindQuotaView]
    volumes: dict[str, HeldView]


class SshKeyView(TypedDict):
    id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: str


#: How far a token reaches, within what its user may do.
Scope = Literal["read", "jobs", "full"]


class TokenView(TypedDict):
    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    expires_at: str | None
    last_used_at: str | None


Role = Literal["operator", "scientist"]


class UserView(TypedDict):
    name: str
    display_name: str
    email: str
    role: Role
    disabled: bool
    group: str | None
    permission_group: str
    provider: str
    must_change_password: bool
    #: Jobs that wait or run.
    active_jobs: int
    created_at: str
    #: To the minute; null if never, or not since signing out.
    last_seen_at: str | None


class LoginCreate(TypedDict):
    user: str
    password: str
    #: Replaces the password, such as a one-time one.
    new_password: NotRequired[str | None]
    #: Answer with a bearer token instead of a cookie.
    token_name: NotRequired[str | None]


class LoginView(TypedDict):
    user: str
    role: Role
    must_change_password: bool
    #: To be sent as X-CSRF-Token with every change.
    csrf_token: NotRequired[str | None]
    token: NotRequired[str | None]


class LimitsView(TypedDict):
    """What holds for everybody; null means no limit."""

    max_gpus_per_user: int | None
    max_gpus_per_job: int | None
    max_total_gpus: int | None
    max_seconds: float | None
    #: The smallest share of a GPU that a job may ask for.
    smallest_share: float


class QuotaView(TypedDict):
    """The most that a user may hold with jobs of one kind; null means no limit."""

    gpus: float | None
    cpus: float | None
    memory_bytes: int | None


class MeView(TypedDict):
    name: str
    display_name: str
    email: str
    role: Role
    group: str | None
    pool: str | None
    permission_group: str
    #: What the caller may do; operators may do everything.
    functions: list[Function]
    provider: str
    must_change_password: bool
    limits: LimitsView
    quota: dict[str, QuotaView]
    csrf_token: NotRequired[str | None]


class NewTokenView(TypedDict):
    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    #: Shown this once; only a hash of it is kept.
    token: str


class OnboardCreate(TypedDict):
    provider: str
    subjects: list[str]
    #: Where newcomers are put; null means in no group.
    group: NotRequired[str | None]


class PasswordChange(TypedDict):
    old: str
    new: str
    #: Revoke all tokens of the user, but for the one that this request is sent with.
    revoke_tokens: NotRequired[bool]


class PermissionGroupCreate(TypedDict):
    name: str
    description: NotRequired[str]
    functions: NotRequired[
        list[
            Literal[
                "train",
                "distribute",
                "workbench",
                "tasks",
                "volumes",
                "datasets",
                "images",
                "see-others-jobs",
                "tokens",
            ]
        ]
    ]


class PermissionGroupEdit(TypedDict):
    description: NotRequired[str | None]
    #: The whole set, replacing the one before.
    functions: NotRequired[
        list[
            Literal[
                "train",
                "distribute",
                "workbench",
                "tasks",
                "volumes",
                "datasets",
                "images",
                "see-others-jobs",
                "tokens",
            ]
        ]
        | None
    ]


class ProfileEdit(TypedDict):
    display_name: NotRequired[str | None]
    email: NotRequired[str | None]


class ProviderCreate(TypedDict):
    id: str
    kind: Literal["github", "gitlab", "oidc"]
    client_id: str
    #: Logins, e-mail addresses, @domains, or * for everybody the provider knows.
    allow: NotRequired[list[str]]
    #: Kept encrypted and never shown again.
    api_token: NotRequired[str]
    #: Kept encrypted and never shown again.
    client_secret: NotRequired[str]
    enabled: NotRequired[bool]
    #: Where newcomers are put; null means in no group.
    group: NotRequired[str | None]
    #: Its address; github.com and gitlab.com need none.
    issuer: NotRequired[str]
    #: A GitHub organisation or GitLab group to list members of.
    organisation: NotRequired[str]
    title: NotRequired[str]


class ProviderEdit(TypedDict):
    """What is left out stays as it is, the secrets too; null forgets a secret."""

    #: Logins, e-mail addresses, @domains, or * for everybody the provider knows.
    allow: NotRequired[list[str]]
    api_token: NotRequired[str | None]
    client_id: NotRequired[str]
    client_secret: NotRequired[str | None]
    enabled: NotRequired[bool]
    #: Where newcomers are put; null means in no group.
    group: NotRequired[str | None]
    issuer: NotRequired[str]
    organisation: NotRequired[str]
    title: NotRequired[str]


class CheckView(TypedDict):
    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    #: What to do about it.
    hint: str


class ProviderTestView(TypedDict):
    ok: bool
    checks: list[CheckView]


class QuotaPut(TypedDict):
    """The most that a user may hold with jobs of one kind; null means no limit."""

    cpus: NotRequired[float | None]
    gpus: NotRequired[float | None]
    memory_bytes: NotRequired[int | None]


class VolumeQuotasPut(TypedDict):
    """The most bytes of a user's volumes of each type; null means no limit."""

    block: NotRequired[int | None]
    filesystem: NotRequired[int | None]
    local: NotRequired[int | None]
    object: NotRequired[int | None]


class QuotasPut(TypedDict):
    """One entry per job kind; a kind that is left out has no limit afterwards. So for the types of volumes, unless
    `volumes` is left out as a whole."""

    distributed: NotRequired[QuotaPut | None]
    preset: NotRequired[QuotaPut | None]
    training: NotRequired[QuotaPut | None]
    volumes: NotRequired[VolumeQuotasPut | None]
    workbench: NotRequired[QuotaPut | None]


class QuotasBatch(TypedDict):
    """The same change for many users. What the quota leaves out stays as it is; null takes a limit away."""

    quota: QuotasPut
    #: Everybody, instead of naming users.
    all: NotRequired[bool]
    users: NotRequired[list[str] | None]


class SshKeyCreate(TypedDict):
    name: str
    #: As in a file that ends in .pub.
    public_key: str


class TokenCreate(TypedDict):
    name: str
    expires_in_days: NotRequired[float | None]
    #: How far it reaches: look; look and change jobs and tasks; everything.
    scopes: NotRequired[list[Literal["read", "jobs", "full"]]]


class UserCreate(TypedDict):
    name: str
    display_name: NotRequired[str]
    email: NotRequired[str]
    #: null means: in no group, and so without a pool.
    group: NotRequired[str | None]
    password: NotRequired[str | None]
    permission_group: NotRequired[str]
    role: NotRequired[Literal["operator", "scientist"] | None]


class UserEdit(TypedDict):
    disabled: NotRequired[bool | None]
    display_name: NotRequired[str | None]
    email: NotRequired[str | None]
    password: NotRequired[str | None]
    permission_group: NotRequired[str | None]
    role: NotRequired[Literal["operator", "scientist"] | None]
