"""Rules by which the groups of a sign-in provider decide about the group and the role of a user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

#: In the place of a group: members are operators.
OPERATOR = "@operator"
FORM = f"a rule is GROUP-OF-THE-PROVIDER=GROUP, or GROUP-OF-THE-PROVIDER={OPERATOR}"


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Members of the provider's group `member_of` are put into `group`; without a group they become operators."""

    member_of: str
    group: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """`group` is None if no rule decides; so is `is_operator`."""

    is_member: bool
    group: str | None
    is_operator: bool | None


def read_rule(text: str) -> GroupRule:
    """The last `=` divides: names in directories, such as `CN=ml,DC=lab`, have others. Raises ValueError."""
    member_of, _, target = text.rpartition("=")
    if not member_of.strip() or not target.strip():
        raise ValueError(FORM)
    return GroupRule(member_of.strip(), None if target.strip() == OPERATOR else target.strip())


def decide(rules: Sequence[GroupRule], member_of: Collection[str], key: Callable[[str], str] | None = None) -> Decision:
    """The first rule with a group of the person decides about the group; any rule for operators about the role. Two
    names with the same `key` mean the same group; without it every letter counts."""
    keys = set(member_of) if key is None else {key(name) for name in member_of}
    matching = [rule for rule in rules if (rule.member_of if key is None else key(rule.member_of)) in keys]
    groups = [rule.group for rule in matching if rule.group is not None]
    has_operators = any(rule.group is None for rule in rules)
    return Decision(
        is_member=bool(matching),
        group=groups[0] if groups else None,
        is_operator=any(rule.group is None for rule in matching) if has_operators else None,
    )
