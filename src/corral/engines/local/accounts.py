"""Which account of the operating system a user's processes belong to, when the server runs as root.

A user has the account that the map names, or else the one of the pattern, or else the default one. Never root's unless
that is allowed, and by the pattern never a system account: a user who is called `postgres` here must not become it.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from corral.control.ports import LaunchRefused

#: Below this, accounts belong to programs and not to people (UID_MIN of login.defs).
FIRST_PERSONAL_UID = 1000
USER_FIELD = "{user}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int
    #: all its groups, the first one too
    groups: tuple[int, ...] = ()
    home: str = ""


def account_named(name: str) -> Account | None:
    """As the machine knows it now; None if it does not."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, home=entry.pw_dir)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountRules:
    """`lookup` knows the machine's accounts."""

    #: `{user}` stands for the user's name; without it all have the same account
    pattern: str = USER_FIELD
    #: user to account, before the pattern
    users: Mapping[str, str] = field(default_factory=dict)
    #: of users who have none; None: their jobs are refused
    default: str | None = "nobody"
    allow_root: bool = False
    lookup: Callable[[str], Account | None] = account_named

    def account_of(self, user: str) -> Account:
        """Raises LaunchRefused, in words for the job's owner."""
        account = self._mapped(user) or self._by_pattern(user) or self._default(user)
        if account.uid == 0 and not self.allow_root:
            raise LaunchRefused(
                f"jobs of {user} would run as root, which this server does not allow: an operator gives {user} another "
                "account in local.run_as, or sets local.allow_root"
            )
        return account

    def _mapped(self, user: str) -> Account | None:
        name = self.users.get(user)
        return self._existing(name, f"local.run_as gives it to {user}") if name is not None else None

    def _by_pattern(self, user: str) -> Account | None:
        if USER_FIELD not in self.pattern:
            return self._existing(self.pattern, "local.run_as.account names it")
        account = self.lookup(self.pattern.replace(USER_FIELD, user))
        return account if account is not None and account.uid >= FIRST_PERSONAL_UID else None

    def _default(self, user: str) -> Account:
        if self.default is None:
            raise LaunchRefused(
                f"{user} has no account on this machine: an operator makes one, or names one in local.run_as.users"
            )
        return self._existing(self.default, "local.run_as.default names it")

    def _existing(self, name: str, why: str) -> Account:
        account = self.lookup(name)
        if account is None:
            raise LaunchRefused(f"there is no account {name} on this machine, although {why}: tell an operator")
        return account


def own_account() -> Account:
    """The server's own, by number: it may have no entry."""
    uid, gid = os.getuid(), os.getgid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(name=str(uid), uid=uid, gid=gid, groups=tuple(os.getgroups()))
    return Account(name=entry.pw_name, uid=uid, gid=gid, groups=tuple(os.getgroups()), home=entry.pw_dir)
