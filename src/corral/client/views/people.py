"""Users, groups, permissions, quotas, tokens, sign-in and the audit log.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict

AccountKind = Literal["user", "group"]


class Assignment(TypedDict):
    users: list[str]


Period = Literal["month", "quarter", "total"]


Unit = Literal["gpu-hours", "money"]


class BudgetPut(TypedDict):
    """The limits of an account in one unit; null means no limit."""

    #: At this amount no further job of the account starts.
    hard_micro: NotRequired[int | None]
    period: NotRequired[Period]
    #: At this amount the audit log gets a line.
    soft_micro: NotRequired[int | None]
    unit: NotRequired[Unit]


class CurrencyPut(TypedDict):
    #: Such as EUR; empty for none. Amounts are not converted.
    currency: str


EntryKind = Literal["charge", "refund", "grant"]


class EntryView(TypedDict):
    """One line of a statement. Charges are negative; grants and refunds are positive."""

    kind: EntryKind
    at: str
    until: str | None
    amount_micro: int
    attempt: str | None
    user: str
    job_name: str
    gpu_model: str
    gpus: float
    actor: str
    note: str


class FirstStepsEdit(TypedDict):
    #: True hides the steps from the caller, false shows them again.
    dismissed: bool


Step = Literal["password", "gpus", "job", "people", "channel", "backup", "submit", "token"]


class FirstStepView(TypedDict):
    name: Step
    #: Whether the result of the step is there; false again if it is removed.
    done: bool


class FirstStepsView(TypedDict):
    #: In the best order; empty if the caller has dismissed them.
    steps: list[FirstStepView]
    dismissed: bool


class GrantCreate(TypedDict):
    #: Added to the account in the present period; a negative amount is taken back.
    amount_micro: int
    note: NotRequired[str]
    unit: NotRequired[Unit]


class GroupCreate(TypedDict):
    name: str
    description: NotRequired[str]
    pool: NotRequired[str | None]
    #: Users who are in no group.
    users: NotRequired[list[str]]


class GroupEdit(TypedDict):
    add_users: NotRequired[list[str]]
    description: NotRequired[str | None]
    #: Users who leave their present group for this one.
    move_users: NotRequired[list[str]]
    #: Null detaches the pool; left out: unchanged.
    pool: NotRequired[str | None]
    remove_users: NotRequired[list[str]]


class GroupView(TypedDict):
    name: str
    description: str
    pool: str | None
    users: list[str]
    users_count: int
    #: GPUs that jobs of these users hold.
    gpus_held: float
    #: GPUs that waiting jobs of these users request.
    gpus_asked: float
    created_at: str


class InboxChannelCode(TypedDict):
    #: The code that was mailed to the address.
    code: str


PersonalChannelKind = Literal["mail", "webhook", "slack", "discord", "teams"]


class InboxChannelCreate(TypedDict):
    name: str
    kind: PersonalChannelKind
    #: A mail address, or the https URL of a chat's webhook. Stored encrypted and never shown again.
    address: str
    #: Any of: started, ended, failed, preempted, estimate, idle, stalled, storage, quota, shared, fleet. Empty:
    #: everything that the inbox shows.
    kinds: NotRequired[list[str]]


class InboxChannelEdit(TypedDict):
    """Fields that are left out keep their values."""

    enabled: NotRequired[bool]
    #: Any of: started, ended, failed, preempted, estimate, idle, stalled, storage, quota, shared, fleet. Empty:
    #: everything that the inbox shows.
    kinds: NotRequired[list[str]]


class InboxChannelView(TypedDict):
    """Where items of the caller's inbox are also sent. The address is stored, but never returned whole."""

    name: str
    kind: PersonalChannelKind
    #: The address without its secrets.
    address: str
    #: Any of: started, ended, failed, preempted, estimate, idle, stalled, storage, quota, shared, fleet. Empty:
    #: everything that the inbox shows.
    kinds: list[str]
    enabled: bool
    #: False until the code that was mailed to the address is typed.
    confirmed: bool
    created_at: str
    sent_at: str | None
    #: Why the last message was not accepted; empty if it was.
    error: str


class InboxChannelsView(TypedDict):
    items: list[InboxChannelView]
    #: The kinds of channels that operators allow.
    allowed: list[PersonalChannelKind]


class InboxRead(TypedDict):
    #: Id of the newest item that was read.
    until: int


class InboxSettings(TypedDict):
    #: Any of: started, ended, failed, preempted, estimate, idle, stalled, storage, quota, shared, fleet.
    muted: list[str]


class InboxStateView(TypedDict):
    read_until: int
    muted: list[str]


InboxKind = Literal[
    "started", "ended", "failed", "preempted", "estimate", "idle", "stalled", "storage", "quota", "shared", "fleet"
]


class InboxItemView(TypedDict):
    id: int
    at: str
    kind: InboxKind
    #: The event, as in the audit log.
    action: str
    subject: str
    #: Name of the job, volume or dataset; empty if it has none or is gone.
    name: str
    #: The message of the event; empty if it has none.
    text: str
    #: Receipt of a preemption or move.
    receipt: int | None
    #: The new expected start, if the item is about a changed estimate.
    expected_at: str | None
    read: bool


class InboxView(TypedDict):
    items: list[InboxItemView]
    next_cursor: str | None
    unread: int
    #: Kinds that the user does not want.
    muted: list[str]


class BudgetView(TypedDict):
    """One account in one unit, with the amounts of the present period."""

    kind: AccountKind
    name: str
    unit: Unit
    period: Period
    period_begin: str | None
    period_end: str | None
    #: false if the account has entries and no limits
    is_limited: bool
    soft_micro: int | None
    hard_micro: int | None
    granted_micro: int
    charged_micro: int
    refunded_micro: int
    #: charges - refunds - grants of this period
    spent_micro: int
    #: Rest of the hard limit; null without one.
    left_micro: int | None
    #: grants - charges + refunds since the first entry
    balance_micro: int
    #: Time at which the hard limit is reached at the rate of the last seven days; null if it is not.
    ends_at: str | None


class EventView(TypedDict):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    #: The user whose job, volume or account the event is about; empty if there is none.
    owner: str
    detail: dict[str, Any]
    source: str


class IdentityView(TypedDict):
    """An account of a provider."""

    provider: str
    subject: str
    login: str
    name: str
    email: str
    #: The user, once the account is on-boarded.
    user: str | None
    #: The allow-list contains the account: the next sign-in creates the user.
    allowed: bool
    #: Time of the last sign-in or of the last attempt.
    seen_at: str | None


#: The functions that a permission group can allow. Operators may use all.
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


class LdapSettingsView(TypedDict):
    """The settings of a directory."""

    base: str
    user_filter: str
    login_attribute: str
    id_attribute: str
    name_attribute: str
    email_attribute: str
    bind_as: str
    group_base: str
    group_filter: str
    member_attribute: str
    nested: bool
    more_addresses: list[str]
    starttls: bool
    allow_plain: bool
    ca_certificate: str
    refresh_minutes: int


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
    groups_claim: str
    group_rules: list[str]
    #: The redirect address to register with the provider.
    redirect_uri: str
    #: The settings of a directory; null for other kinds.
    directory: LdapSettingsView | None
    #: Number of users of this provider.
    users: int
    #: An operator has signed in with this provider.
    has_operator: bool
    created_at: str


class ProviderView(TypedDict):
    """A sign-in provider, as it is shown before sign-in."""

    id: str
    kind: str
    title: str
    #: Address that a browser opens to sign in. For passwords and directories it is the console.
    login_url: str


class HeldView(TypedDict):
    #: null means no limit
    limit: float | None
    #: Held by jobs that have resources, or by volumes.
    held: float
    #: Requested by waiting jobs. Held and asked count against the limit together.
    asked: float


class KindQuotaView(TypedDict):
    gpus: HeldView
    cpus: HeldView
    memory_bytes: HeldView


class QuotaUsageView(TypedDict):
    user: str
    kinds: dict[str, KindQuotaView]
    volumes: dict[str, HeldView]


class SecretView(TypedDict):
    name: str
    #: The group that the secret belongs to; null: the caller's own.
    group: str | None
    set_by: str
    set_at: str


class SshKeyView(TypedDict):
    id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: str


#: Reach of a token, within the rights of its user.
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
    #: Precise to the minute; null if never, or not since signing out.
    last_seen_at: str | None


class LoginCreate(TypedDict):
    user: str
    password: str
    #: Replaces the password, for example a one-time password.
    new_password: NotRequired[str | None]
    #: The directory (a provider of the kind `ldap`) that checks the password.
    provider: NotRequired[str | None]
    #: Answer with a bearer token instead of a cookie.
    token_name: NotRequired[str | None]


class LoginView(TypedDict):
    user: str
    role: Role
    must_change_password: bool
    #: Send it in the header X-CSRF-Token with every change.
    csrf_token: NotRequired[str | None]
    token: NotRequired[str | None]


class LimitsView(TypedDict):
    """Limits for all users; null means no limit."""

    max_gpus_per_user: int | None
    max_gpus_per_job: int | None
    max_total_gpus: int | None
    max_seconds: float | None
    #: The smallest share of a GPU that a job may ask for.
    smallest_share: float


class QuotaView(TypedDict):
    """Limits on the resources that a user's jobs of one kind may hold; null means no limit."""

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
    #: Functions that the caller may use; operators may use all.
    functions: list[Function]
    provider: str
    must_change_password: bool
    #: Id of the newest event before this answer; a stream that begins there has all that happened since.
    event_id: int
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
    #: Shown only once; only a hash is stored.
    token: str


class OnboardCreate(TypedDict):
    provider: str
    subjects: list[str]
    #: Group of new users; null means no group.
    group: NotRequired[str | None]
    #: Subjects that become operators; the others become scientists.
    operators: NotRequired[list[str]]


class PasswordChange(TypedDict):
    old: str
    new: str
    #: Revoke all tokens of the user except the one of this request.
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
    #: The complete set; it replaces the present one.
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


class PricePut(TypedDict):
    """The price of one hour of a whole GPU of a model, in millionths."""

    model: str
    money_micro: NotRequired[int]
    #: GPU-hours that one hour of this model counts for.
    weight_micro: NotRequired[int]


class PriceView(TypedDict):
    model: str
    weight_micro: int
    money_micro: int


class PricesView(TypedDict):
    currency: str
    items: list[PriceView]


class ProfileEdit(TypedDict):
    display_name: NotRequired[str | None]
    email: NotRequired[str | None]


class LdapSettingsBody(TypedDict):
    """Settings that are left out keep their values; those of a new directory fit OpenLDAP."""

    #: Allow `ldap://` without StartTLS to another machine: passwords can be read on the way.
    allow_plain: NotRequired[bool]
    #: Where people are searched, as `ou=people,dc=example,dc=org`.
    base: NotRequired[str]
    #: The name to sign in to the directory with as the person, with `{}` in the place of the login (`{}@example.org`).
    #: Without it the service account searches for the person.
    bind_as: NotRequired[str]
    #: The certificates (PEM) that alone are trusted; empty for those of the machine.
    ca_certificate: NotRequired[str]
    email_attribute: NotRequired[str]
    #: Where groups with the person as a member are searched; groups directly below it have short names.
    group_base: NotRequired[str]
    group_filter: NotRequired[str]
    #: An id that never changes: `entryUUID`, or `objectGUID` in Active Directory.
    id_attribute: NotRequired[str]
    #: `uid`, or `sAMAccountName` in Active Directory.
    login_attribute: NotRequired[str]
    #: The attribute of a group with its members; `memberUid` has logins.
    member_attribute: NotRequired[str]
    #: Copies of the directory, asked in this order if `issuer` does not answer.
    more_addresses: NotRequired[list[str]]
    name_attribute: NotRequired[str]
    #: Members of groups in a group are members of this group, too.
    nested: NotRequired[bool]
    #: Time between two look-ups of the users. Those who have left lose sessions and tokens.
    refresh_minutes: NotRequired[int]
    #: Encrypt connections to `ldap://` addresses by StartTLS.
    starttls: NotRequired[bool]
    #: The filter of entries that are people.
    user_filter: NotRequired[str]


class ProviderCreate(TypedDict):
    id: str
    kind: Literal["github", "gitlab", "oidc", "ldap"]
    #: Logins, e-mail addresses, @domains, or * for all accounts of the provider.
    allow: NotRequired[list[str]]
    #: Stored encrypted and never shown again.
    api_token: NotRequired[str]
    #: The client id; of a directory its service account.
    client_id: NotRequired[str]
    #: Stored encrypted and never shown again.
    client_secret: NotRequired[str]
    #: For the kind `ldap` only.
    directory: NotRequired[LdapSettingsBody | None]
    enabled: NotRequired[bool]
    #: Group of new users; null means no group.
    group: NotRequired[str | None]
    #: `GROUP-OF-THE-PROVIDER=GROUP`, or `…=@operator`: the group and the role of a person, decided at each sign-in.
    #: Members of these groups may sign in.
    group_rules: NotRequired[list[str]]
    #: The claim with the groups of a person; dots lead into objects (`realm_access.roles`). Of a directory the
    #: attribute with them. Empty for the usual one: `groups`, or `memberOf`.
    groups_claim: NotRequired[str]
    #: The provider's address; not needed for github.com and gitlab.com.
    issuer: NotRequired[str]
    #: A GitHub organisation or GitLab group whose members are listed.
    organisation: NotRequired[str]
    title: NotRequired[str]


class ProviderEdit(TypedDict):
    """Fields that are left out keep their values, the secrets too; null removes a secret."""

    #: Logins, e-mail addresses, @domains, or * for all accounts of the provider.
    allow: NotRequired[list[str]]
    api_token: NotRequired[str | None]
    #: The client id; of a directory its service account.
    client_id: NotRequired[str]
    client_secret: NotRequired[str | None]
    #: The changed settings of a directory.
    directory: NotRequired[LdapSettingsBody | None]
    enabled: NotRequired[bool]
    #: Group of new users; null means no group.
    group: NotRequired[str | None]
    #: `GROUP-OF-THE-PROVIDER=GROUP`, or `…=@operator`: the group and the role of a person, decided at each sign-in.
    #: Members of these groups may sign in.
    group_rules: NotRequired[list[str]]
    #: The claim with the groups of a person; dots lead into objects (`realm_access.roles`). Of a directory the
    #: attribute with them. Empty for the usual one: `groups`, or `memberOf`.
    groups_claim: NotRequired[str]
    issuer: NotRequired[str]
    organisation: NotRequired[str]
    title: NotRequired[str]


class CheckView(TypedDict):
    name: str
    state: Literal["ok", "warn", "fail"]
    detail: str
    #: Advice for fixing the problem.
    hint: str


class ProviderTestView(TypedDict):
    ok: bool
    checks: list[CheckView]


class QuotaPut(TypedDict):
    """Limits on the resources that a user's jobs of one kind may hold; null means no limit."""

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
    """One entry per job kind; a kind that is left out has no limit afterwards. The same holds for the types of volumes,
    unless `volumes` is left out altogether."""

    distributed: NotRequired[QuotaPut | None]
    preset: NotRequired[QuotaPut | None]
    training: NotRequired[QuotaPut | None]
    volumes: NotRequired[VolumeQuotasPut | None]
    workbench: NotRequired[QuotaPut | None]


class QuotasBatch(TypedDict):
    """The same change for many users. Limits that are left out stay unchanged; null removes a limit."""

    quota: QuotasPut
    #: All users, instead of a list of users.
    all: NotRequired[bool]
    users: NotRequired[list[str] | None]


class SecretPut(TypedDict):
    #: Stored encrypted and never shown again.
    value: str
    #: Store it for this group instead of the caller; only operators can set it.
    group: NotRequired[str | None]


class SshKeyCreate(TypedDict):
    name: str
    #: The content of a .pub file.
    public_key: str


class StatementView(TypedDict):
    kind: AccountKind
    name: str
    unit: Unit
    currency: str
    since: str
    until: str
    opening_micro: int
    closing_micro: int
    items: list[EntryView]


class TokenCreate(TypedDict):
    name: str
    expires_in_days: NotRequired[float | None]
    #: Scope: read; read and change jobs and tasks; everything.
    scopes: NotRequired[list[Literal["read", "jobs", "full"]]]


class UserCreate(TypedDict):
    name: str
    display_name: NotRequired[str]
    email: NotRequired[str]
    #: null means no group, and so no pool of a group.
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
