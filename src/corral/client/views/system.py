"""The installation: version, parts, licence and settings.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, TypedDict

#: How far jobs of different users are kept apart from each other and from the server.
Separation = Literal["accounts", "shared_accounts", "single_user"]


class IsolationView(TypedDict):
    """How far jobs of different users are kept apart from each other and from the server."""

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
    """One part of the server and how it is."""

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
    licence: LicenceView


class HealthView(TypedDict):
    status: str


class LicencePut(TypedDict):
    token: str


#: What was found, in the order in which things are shown.
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
    #: What its own route knows it by; of an image that somebody owns `owner/name`.
    id: str
    title: str
    #: A few words that tell it from its namesakes.
    detail: str


class SearchView(TypedDict):
    items: list[FoundView]


class SettingView(TypedDict):
    #: Within its section, such as interval_seconds.
    key: str
    #: Null where there is none. Secrets are masked.
    value: Any
    #: Where it came from: default, a line of the file, a variable, the command line.
    source: str
    is_default: bool


class SettingsSectionView(TypedDict):
    name: str
    settings: list[SettingView]


class SettingsView(TypedDict):
    config_file: str | None
    #: Those of corral.yaml, in its order.
    sections: list[SettingsSectionView]
