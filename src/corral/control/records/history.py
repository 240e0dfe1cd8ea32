"""Records of events, past scores and the journal; and pages of lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar


@dataclass(frozen=True, kw_only=True, slots=True)
class ScorePoint:
    """A user's score when an allocation began or ended; between two points it follows from the first."""

    user: str
    model: str
    at: float
    value: float
    usage: float


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
class EventFilter:
    actor: str | None = None
    action: str | None = None
    #: any of these; empty: all
    actions: tuple[str, ...] = ()
    #: not by this actor
    not_by: str | None = None
    #: with larger ids only
    after_id: int = 0
    subject: str | None = None
    owner: str | None = None
    since: float | None = None
    until: float | None = None
    #: somewhere in the actor, the action, the subject or the detail, in any case
    text: str | None = None


Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    #: where the next page begins; None on the last page
    next_cursor: str | None = None
