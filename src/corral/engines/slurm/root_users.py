"""Finds the users whose jobs run as root on the nodes of a Slurm cluster: on every node, not only on the server's own
machine."""

from __future__ import annotations

import os

from corral.engines.attempts.accounts import AccountRules

REMEDY = "name another account for them in local.run_as.users, or forbid it with local.allow_root: false"


def root_on_nodes(accounts: AccountRules | None, *, is_root: bool | None = None) -> str:
    """A message, or "" if no job does. `accounts` are the rules of a server that runs as root."""
    if not (os.geteuid() == 0 if is_root is None else is_root):
        return ""
    if accounts is None:
        return "jobs of all users run as root on its nodes"
    if not accounts.allow_root:
        return ""
    found = {user: accounts.lookup(name) for user, name in accounts.users.items()}
    named = sorted(user for user, account in found.items() if account is not None and account.uid == 0)
    return f"jobs of {', '.join(named)} run as root on its nodes" if named else ""
