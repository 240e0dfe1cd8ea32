"""Shares of apps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AppShareKind(StrEnum):
    GROUP = "group"
    LINK = "link"


@dataclass(frozen=True, kw_only=True, slots=True)
class AppShare:
    """Access of other users to the app of a job: of a group, or of users who have a link."""

    job_id: str
    kind: AppShareKind
    #: the group, or the id of the link
    name: str
    #: the hash of the link's secret; "" for a group
    secret_hash: str = ""
    created_at: float = 0.0
    #: None: until it is removed
    expires_at: float | None = None

    def is_valid(self, now: float) -> bool:
        return self.expires_at is None or now < self.expires_at
