"""The installation: version, parts, licence and settings.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, TypedDict

from corral.client.views.people import Function


class GpuSharesView(TypedDict):
    """Whether a job with a share of a GPU (`gpus` below 1) is limited to it."""

    enforced: bool
    detail: str


#: Isolation of the jobs of different users from each other and from the server.
Separation = Literal["accounts", "shared_accounts", "single_user"]


class IsolationView(TypedDict):
    """Isolation of the jobs of different users from each other and from the server."""

    #: accounts: each user has an account of the machine; shared_accounts: some users share one; single_user: jobs run
    #: as the server's own account and can change everything that it stores.
    separation: Separation
    detail: str


LicenceState = Literal["none", "valid", "expiring", "expired", "invalid"]


class LicenceView(TypedDict):
    state: LicenceState
    holder: str | None
    expires_at: str | None
    detail: str


class PartView(TypedDict):
    """One part of the server and its health."""

    name: str
    healthy: bool
    detail: str


class AboutView(TypedDict):
    version: str
    build: str
    started_at: str
    uptime_seconds: float
    store: dict[str, str]
    engines: list[str]
    parts: list[PartView]
    isolation: IsolationView
    gpu_shares: GpuSharesView
    licence: LicenceView


class HealthView(TypedDict):
    status: str


class LicencePut(TypedDict):
    token: str


PartKind = Literal[
    "server", "controller", "store", "history", "disk", "engine", "spawner", "daemon", "outbox", "exporter", "worker"
]


class PartStatusView(TypedDict):
    """One part of the platform, as the status page shows it."""

    name: str
    kind: PartKind
    #: The cluster that it serves; null if it serves the whole installation.
    cluster: str | None
    #: The node on which a daemon runs.
    node: str | None
    healthy: bool
    #: Description of the problem; of a healthy part, a note.
    detail: str
    #: Since when it is healthy, or not, as far as this server has seen.
    since: str
    #: Number of restarts, and of recoveries after a failure.
    restarts: int
    #: Kept after the part works again.
    last_error: str | None
    last_error_at: str | None
    #: The path of its last log lines; null if it has no log on the server.
    log: str | None


class FunctionView(TypedDict):
    name: Function
    #: Rights that the function gives, in English.
    description: str


class OptionView(TypedDict):
    #: The value in requests and answers.
    name: str
    #: In English, for users.
    description: str


class OrderingPolicyView(TypedDict):
    #: The value in requests and answers.
    name: str
    #: In English, for users.
    description: str
    #: Queues with this policy can preempt by their order (`preempts`).
    ranks_jobs: bool
    #: Users can order their own waiting jobs.
    uses_own_order: bool
    #: The order depends on the scores of the users.
    uses_score: bool


class OptionsView(TypedDict):
    """Each list in the order in which the options are shown, the default one first."""

    ordering_policies: list[OrderingPolicyView]
    placement_policies: list[OptionView]
    #: Functions that a permission group can allow.
    functions: list[FunctionView]


#: The type of a match, in the order in which matches are shown.
Type = Literal[
    "job",
    "workbench",
    "user",
    "node",
    "gpu",
    "queue",
    "pool",
    "group",
    "package",
    "flavor",
    "image",
    "volume",
    "alert-rule",
    "report",
]


class FoundView(TypedDict):
    type: Type
    #: Id for the item's own route; `owner/name` of an image that has an owner.
    id: str
    title: str
    #: A short text that distinguishes items of the same name.
    detail: str


class SearchView(TypedDict):
    items: list[FoundView]


ServerRole = Literal["leader", "standby"]


class ServerView(TypedDict):
    """One server over the store."""

    name: str
    #: At which the other servers reach it.
    url: str
    host: str
    pid: int
    version: str
    role: ServerRole
    #: Whether the server was seen within the last seconds, by the clock of the store.
    alive: bool
    may_lead: bool
    #: Why it may not lead.
    detail: str
    started_at: str
    #: Null for a standby.
    leads_since: str | None
    seen_seconds_ago: float
    #: Events that a standby has not followed yet.
    behind_events: int


class ServersView(TypedDict):
    """All servers over the store: the one that leads, and those that stand by."""

    items: list[ServerView]
    leader_changes: int
    leader_changed_at: str | None
    #: Another server is alive that could lead.
    has_standby: bool


class SettingView(TypedDict):
    #: Key within the section, such as interval_seconds.
    key: str
    #: Null if there is none. Secrets are masked.
    value: Any
    #: Source of the value: default, a line of the file, a variable, the command line.
    source: str
    is_default: bool


class SettingsSectionView(TypedDict):
    name: str
    settings: list[SettingView]


class SettingsView(TypedDict):
    config_file: str | None
    #: The sections of corral.yaml, in its order.
    sections: list[SettingsSectionView]
