"""Who becomes whom, when the server runs as root."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import LaunchRefused
from corral.engines.local.accounts import Account, AccountRules

ACCOUNTS = {
    name: Account(name=name, uid=uid, gid=uid)
    for name, uid in [("root", 0), ("postgres", 114), ("ada", 1001), ("alovelace", 1002), ("lab-bob", 1003)]
} | {"nobody": Account(name="nobody", uid=65534, gid=65534)}
RULES = AccountRules(lookup=ACCOUNTS.get)

#: rules, user, account or words of the refusal
STORIES: list[tuple[AccountRules, str, str]] = [
    (RULES, "ada", "ada"),
    (RULES, "eve", "nobody"),
    # names that the machine uses for itself are not for people
    (RULES, "postgres", "nobody"),
    (RULES, "root", "nobody"),
    (replace(RULES, allow_root=True), "root", "nobody"),
    (replace(RULES, users={"ada": "alovelace"}), "ada", "alovelace"),
    (replace(RULES, users={"db": "postgres"}), "db", "postgres"),
    (replace(RULES, pattern="lab-{user}"), "bob", "lab-bob"),
    (replace(RULES, pattern="lab-{user}"), "ada", "nobody"),
    (replace(RULES, pattern="nobody"), "ada", "nobody"),
    (replace(RULES, default=None), "eve", "eve has no account on this machine"),
    (replace(RULES, default="gone"), "eve", "there is no account gone"),
    (replace(RULES, users={"ada": "gone"}), "ada", "local.run_as gives it to ada"),
    (replace(RULES, users={"ada": "root"}), "ada", "would run as root"),
    (replace(RULES, users={"ada": "root"}, allow_root=True), "ada", "root"),
    (replace(RULES, pattern="root"), "ada", "would run as root"),
    (replace(RULES, default="root"), "eve", "would run as root"),
    (replace(RULES, pattern="root", allow_root=True), "ada", "root"),
]


@pytest.mark.parametrize(("rules", "user", "outcome"), STORIES)
def test_who_becomes_whom(rules: AccountRules, user: str, outcome: str) -> None:
    if " " not in outcome:
        assert rules.account_of(user).name == outcome
        return
    with pytest.raises(LaunchRefused, match=outcome):
        rules.account_of(user)
