"""Who can still operate an installation: the question behind every refusal to lock the last operator out.

An operator counts who is not disabled and has a way in: a password, or a sign-in provider that is switched on.
"""

from __future__ import annotations

from corral.control.ports import Transaction
from corral.control.records import LOCAL_PROVIDER, Role, UserRecord


def is_acting_operator(user: UserRecord) -> bool:
    return user.role is Role.OPERATOR and not user.disabled


def reachable_operators(tx: Transaction, *, without_provider: str | None = None) -> list[UserRecord]:
    """Acting operators who can sign in; `without_provider` asks as if that provider were switched off."""
    open_providers = {item.id for item in tx.providers.all() if item.enabled and item.id != without_provider}
    return [user for user in tx.people.users() if is_acting_operator(user) and _has_a_way_in(user, open_providers)]


def _has_a_way_in(user: UserRecord, open_providers: set[str]) -> bool:
    if user.password_hash is not None:
        return True
    return user.provider != LOCAL_PROVIDER and user.provider in open_providers
