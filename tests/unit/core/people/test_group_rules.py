"""Rules for the groups of sign-in providers."""

from __future__ import annotations

import pytest

from corral.core.people.group_rules import Decision, GroupRule, decide, read_rule

RULES = [read_rule(text) for text in ("ml=vision", "CN=robots,DC=lab=robots", "admins=@operator")]


def test_the_last_equals_sign_divides_a_rule() -> None:
    assert [GroupRule("ml", "vision"), GroupRule("CN=robots,DC=lab", "robots"), GroupRule("admins", None)] == RULES


@pytest.mark.parametrize("text", ["", "ml", "=vision", "ml=", " = "])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a rule is"):
        read_rule(text)


@pytest.mark.parametrize(
    ("member_of", "decision"),
    [
        ((), Decision(False, None, False)),
        (("strangers",), Decision(False, None, False)),
        (("CN=robots,DC=lab", "ml"), Decision(True, "vision", False)),
        (("admins",), Decision(True, None, True)),
        (("admins", "ml"), Decision(True, "vision", True)),
    ],
)
def test_the_first_rule_decides_about_the_group_and_any_about_the_role(
    member_of: tuple[str, ...], decision: Decision
) -> None:
    assert decide(RULES, member_of) == decision


def test_rules_without_operators_leave_the_role_as_it_is() -> None:
    assert decide(RULES[:1], ("ml",)).is_operator is None
    assert decide([], ("ml",)) == Decision(False, None, None)
