"""Shares: the user or group, and the mode."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ShareKind(StrEnum):
    USER = "user"
    GROUP = "group"


class ShareMode(StrEnum):
    READ = "ro"
    WRITE = "rw"


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    kind: ShareKind
    name: str
    mode: ShareMode = ShareMode.READ
