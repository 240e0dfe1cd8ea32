"""The accounts of jobs when the server runs as root."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import LaunchRefused
from corral.engines.attempts.accounts import Account, AccountRules

ACCOUNTS = {
    name: Account(name=name, uid=uid, gid=uid)
    for name, uid in [
        ("root", 0),
        ("postgres", 114),
        ("ada", 1001),
        ("alovelace", 1002),
        ("lab-bob", 1003),
        ("dynamic", 61190),
    ]
} | {"nobody": Account(name="nobody", uid=65534, gid=65534)}
RULES = AccountRules(lookup=ACCOUNTS.get)
SHARING = replace(RULES, share_default=True)
BARRED = replace(RULES, users={"operator": "root"}, allow_root=True, barrier="/root")

#: rules, user, account or words of the refusal
STORIES: list[tuple[AccountRules, str, str]] = [
    (RULES, "ada", "ada"),
    # users without an account are refused, unless they may share one
    (RULES, "eve", "eve has no account on this machine.*useradd --create-home eve.*share_default: true"),
    (replace(RULES, pattern="lab-{user}"), "eve", "useradd --create-home lab-eve"),
    (replace(RULES, pattern="lab-{user}"), "ada", "ada has no account on this machine"),
    (SHARING, "eve", "nobody"),
    (replace(SHARING, pattern="lab-{user}"), "ada", "nobody"),
    (replace(SHARING, default=None), "eve", "eve has no account on this machine"),
    (replace(SHARING, default="gone"), "eve", "there is no account gone"),
    # names that the machine uses for itself are not for people
    (RULES, "postgres", "postgres has no account.*postgres is an account of the system"),
    (RULES, "nobody", "nobody has no account"),
    (RULES, "dynamic", "dynamic has no account"),
    (SHARING, "postgres", "nobody"),
    (SHARING, "root", "nobody"),
    (replace(SHARING, allow_root=True), "root", "nobody"),
    (replace(RULES, users={"ada": "alovelace"}), "ada", "alovelace"),
    (replace(RULES, users={"db": "postgres"}), "db", "postgres"),
    (replace(RULES, pattern="lab-{user}"), "bob", "lab-bob"),
    (replace(RULES, pattern="nobody"), "ada", "nobody"),
    # an account that the map gives to one user is not another's by its name
    (replace(RULES, users={"ada": "alovelace"}), "alovelace", "account alovelace belongs to the user ada"),
    (replace(SHARING, users={"ada": "alovelace"}), "alovelace", "account alovelace belongs to the user ada"),
    (replace(RULES, users={"ada": "alovelace", "alovelace": "alovelace"}), "alovelace", "alovelace"),
    (replace(RULES, users={"ada": "gone"}), "ada", "local.run_as gives it to ada"),
    (replace(RULES, users={"ada": "root"}), "ada", "would run as root"),
    (replace(RULES, users={"ada": "root"}, allow_root=True), "ada", "root"),
    (replace(RULES, pattern="root"), "ada", "would run as root"),
    (replace(SHARING, default="root"), "eve", "would run as root"),
    (replace(RULES, pattern="root", allow_root=True), "ada", "root"),
    # what only root can reach
    (BARRED, "operator", "root"),
    (BARRED, "ada", "jobs of ada cannot run here.*/root.*CORRAL_HOME=/var/lib/corral.*local.allow_root: true"),
    (BARRED, "eve", "jobs of eve cannot run here"),
    (replace(BARRED, share_default=True), "eve", "jobs of eve cannot run here"),
]


@pytest.mark.parametrize(("rules", "user", "outcome"), STORIES)
def test_users_get_their_account_or_a_refusal(rules: AccountRules, user: str, outcome: str) -> None:
    if " " not in outcome:
        assert rules.account_of(user).name == outcome
        return
    with pytest.raises(LaunchRefused, match=outcome):
        rules.account_of(user)


@pytest.mark.parametrize(
    ("rules", "user", "is_shared"),
    [
        (RULES, "ada", False),
        (SHARING, "ada", False),
        (SHARING, "eve", True),
        (replace(RULES, pattern="lab-bob"), "ada", True),
        (replace(RULES, pattern="lab-bob", users={"ada": "alovelace"}), "ada", False),
        (replace(RULES, pattern="lab-bob", users={"ada": "lab-bob"}), "ada", True),
        (replace(RULES, users={"ada": "alovelace", "bob": "lab-bob"}), "ada", False),
        (replace(RULES, users={"ada": "alovelace", "bob": "alovelace"}), "ada", True),
        (replace(RULES, users={"ada": "nobody"}), "ada", False),
        (replace(SHARING, users={"ada": "nobody"}), "ada", True),
    ],
)
def test_shared_accounts_are_found(rules: AccountRules, user: str, is_shared: bool) -> None:
    assert rules.is_shared(user) is is_shared
