"""Secrets of users and groups."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.people.budgets import Account


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretRecord:
    """A value that jobs get and no answer shows."""

    owner: Account
    name: str
    #: encrypted; never shown
    value: str
    #: who stored the present value, and when
    set_by: str = ""
    set_at: float = 0.0
