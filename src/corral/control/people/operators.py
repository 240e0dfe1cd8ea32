"""Operators: the check that a caller is one, and which operators can still sign in.

An installation must keep at least one operator who can sign in. An operator counts if the account is not disabled and
has a password or a sign-in provider that is switched on.
"""

from __future__ import annotations

from corral.control.errors import Forbidden
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import LOCAL_PROVIDER, Role, UserRecord


def require_operator(caller: Caller, action: str) -> None:
    """Refuse unless the caller is an operator. `action` completes the sentence "only operators …"."""
    if not caller.is_operator:
        raise Forbidden(f"only operators {action}")


def is_acting_operator(user: UserRecord) -> bool:
    return user.role is Role.OPERATOR and not user.disabled


def reachable_operators(tx: Transaction, *, without_provider: str | None = None) -> list[UserRecord]:
    """Acting operators who can sign in; `without_provider` asks as if that provider were switched off."""
    open_providers = {item.id for item in tx.providers.all() if item.enabled and item.id != without_provider}
    return [user for user in tx.people.users() if is_acting_operator(user) and _can_sign_in(user, open_providers)]


def _can_sign_in(user: UserRecord, open_providers: set[str]) -> bool:
    if user.password_hash is not None:
        return True
    return user.provider != LOCAL_PROVIDER and user.provider in open_providers
