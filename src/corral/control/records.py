"""What is kept about things, beyond what the scheduler needs to decide.

Records are values like those of the core: a use case reads one, makes a changed copy and hands it to the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from corral.core.model import Allocation, EndReason, Job, JobKind, JobState, Quota


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSpec:
    """What a job runs. Set when it is created, never changed after."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    #: words of the request as the user gave them, kept for showing and cloning
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRecord:
    job: Job
    spec: JobSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """One run of a job on one allocation, kept after its end."""

    id: str
    job_id: str
    number: int
    allocation: Allocation
    planned_at: float
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""


class Role(StrEnum):
    OPERATOR = "operator"
    SCIENTIST = "scientist"


@dataclass(frozen=True, kw_only=True, slots=True)
class UserRecord:
    name: str
    role: Role = Role.SCIENTIST
    #: None means: cannot sign in with a password
    password_hash: str | None = None
    #: the first password is for one use: it must be replaced at the first sign-in in a browser
    must_change_password: bool = False
    disabled: bool = False
    created_at: float = 0.0


class CredentialKind(StrEnum):
    TOKEN = "token"
    SESSION = "session"


@dataclass(frozen=True, kw_only=True, slots=True)
class CredentialRecord:
    """A bearer token or a browser session. Only a hash of the secret is kept."""

    id: str
    kind: CredentialKind
    user: str
    name: str = ""
    secret_hash: str
    #: the value that a browser must send back in a header; only sessions have one
    csrf: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    last_used_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaRecord:
    user: str
    kind: JobKind
    quota: Quota


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRecord:
    """One line of the audit log: who did what to which thing, when and from where."""

    #: given by the store, growing without repetition
    id: int = 0
    at: float
    #: a user's name, or "corral" for what the platform did by itself
    actor: str
    #: noun.verb, such as "job.submitted"
    action: str
    #: the id of the thing
    subject: str
    #: the owner of the thing, for deciding who may see the event; "" means operators only or everyone by action
    owner: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    #: the address that the request came from
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleRecord:
    """One entry of the scheduler's journal: the inputs as changes since the entry before, and the plan."""

    id: int = 0
    at: float
    #: True when `changes` is a whole snapshot from which later entries start
    is_base: bool
    #: digest of the snapshot that the plan was made from
    digest: str
    changes: bytes
    plan: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs a list shows; an empty field lets every job through."""

    states: tuple[JobState, ...] = ()
    kinds: tuple[JobKind, ...] = ()
    user: str | None = None
    queue: str | None = None
    name_contains: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFilter:
    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    owner: str | None = None
    since: float | None = None
    until: float | None = None


Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    #: where the next page begins; None on the last page
    next_cursor: str | None = None
