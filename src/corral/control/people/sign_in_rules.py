"""Rules of a provider: the groups that it names decide about the group and the role of a user."""

from __future__ import annotations

from collections.abc import Collection

from corral.control.live.unit_of_work import Caller, Work
from corral.control.people import groups, user_accounts
from corral.control.people.operators import reachable_operators
from corral.control.records import ProviderKind, ProviderRecord, Role, UserRecord
from corral.core.people.directory_names import group_key
from corral.core.people.group_rules import Decision, decide, read_rule


def decision_of(provider: ProviderRecord, member_of: Collection[str]) -> Decision:
    """Names of groups in a directory are the same in any case and spelling; of other providers every letter counts."""
    rules = [read_rule(rule) for rule in provider.group_rules]
    return decide(rules, member_of, group_key if provider.kind is ProviderKind.LDAP else None)


def apply_decision(work: Work, caller: Caller, user: UserRecord, decision: Decision) -> UserRecord:
    """Gives a user the group and the role that the rules decide; the last operator who can sign in keeps the role."""
    if decision.group is not None and decision.group != user.group:
        user = groups.place_user(work, caller, user, decision.group)
    if decision.is_operator is None or decision.is_operator == (user.role is Role.OPERATOR):
        return user
    if not decision.is_operator and all(other.name == user.name for other in reachable_operators(work.tx)):
        work.record(caller, "user.role-kept", user.name, owner=user.name, detail={"reason": "the last operator"})
        return user
    role = Role.OPERATOR if decision.is_operator else Role.SCIENTIST
    return user_accounts.edit_user(work, caller, user.name, role=role)
