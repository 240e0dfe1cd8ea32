"""The accounts of the operating system that users' processes get when the server runs as root.

A user gets the account that the map names, or else the account of the pattern. A user without either is refused, unless
the operator lets such users share the default account. Root's account is used only where that is allowed. The pattern
never yields a system account (a corral user named `postgres` must not become the system's `postgres`), nor an account
that the map gives to another user.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from corral.control.ports import LaunchRefused

#: Below this, accounts belong to programs and not to people (UID_MIN of login.defs).
FIRST_PERSONAL_UID = 1000
#: Accounts that systemd makes for services, and `nobody`.
RESERVED_UIDS = range(61184, 65536)
USER_FIELD = "{user}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int
    #: all its groups, including the primary one
    groups: tuple[int, ...] = ()
    home: str = ""


def account_named(name: str) -> Account | None:
    """The account as the machine knows it now; None if there is none."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, home=entry.pw_dir)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountRules:
    """`lookup` returns an account of the machine."""

    #: `{user}` stands for the user's name; without it all users have the same account
    pattern: str = USER_FIELD
    #: user to account; takes precedence over the pattern
    users: Mapping[str, str] = field(default_factory=dict)
    #: the account of users without one, if they may share it
    default: str | None = "nobody"
    share_default: bool = False
    allow_root: bool = False
    #: a directory that only root can reach and that every job needs; "" if other accounts can run jobs
    barrier: str = ""
    lookup: Callable[[str], Account | None] = account_named

    def account_of(self, user: str) -> Account:
        """Raises LaunchRefused with a message for the job's owner."""
        account = self._mapped(user) or self._by_pattern(user)
        if self.barrier and (account is None or account.uid != 0):
            raise LaunchRefused(
                f"jobs of {user} cannot run here: the server runs as root from a directory that no other account can "
                f"reach ({self.barrier}), and jobs of {user} do not run as root. An operator moves corral and its home "
                "to directories that every account can pass, such as /opt/corral and CORRAL_HOME=/var/lib/corral, or "
                "sets local.allow_root: true if every user may be root on this machine"
            )
        account = account or self._default(user)
        if account.uid == 0 and not self.allow_root:
            raise LaunchRefused(
                f"jobs of {user} would run as root, which this server does not allow: an operator gives {user} another "
                "account in local.run_as, or sets local.allow_root"
            )
        return account

    def is_shared(self, user: str) -> bool:
        """Whether jobs of other users may have this user's account too."""
        name = self.users.get(user)
        if name is None:
            return self.has_shared_pattern or self._by_pattern(user) is None
        others = {account for other, account in self.users.items() if other != user}
        if self.has_shared_pattern:
            others.add(self.pattern)
        if self.share_default and self.default is not None:
            others.add(self.default)
        return name in others

    @property
    def has_shared_pattern(self) -> bool:
        return USER_FIELD not in self.pattern

    def _mapped(self, user: str) -> Account | None:
        name = self.users.get(user)
        return self._existing(name, f"local.run_as gives it to {user}") if name is not None else None

    def _by_pattern(self, user: str) -> Account | None:
        if self.has_shared_pattern:
            return self._existing(self.pattern, "local.run_as.account names it")
        name = self.pattern.replace(USER_FIELD, user)
        account = self.lookup(name)
        if account is None or account.uid < FIRST_PERSONAL_UID or account.uid in RESERVED_UIDS:
            return None
        owner = next((other for other, mapped in self.users.items() if mapped == name), None)
        if owner is not None:
            raise LaunchRefused(
                f"the account {name} belongs to the user {owner} (local.run_as.users): an operator names another one "
                f"for {user} there, or the same one if both are to share it"
            )
        return account

    def _default(self, user: str) -> Account:
        if self.default is None or not self.share_default:
            raise LaunchRefused(
                f"{user} has no account on this machine, and jobs run as the account of their user: an operator makes "
                f"one ({self._how_to_make(user)}), or names one in local.run_as.users; users without an account share "
                f"one ({self.default or 'local.run_as.default'}) only with local.run_as.share_default: true"
            )
        return self._existing(self.default, "local.run_as.default names it")

    def _how_to_make(self, user: str) -> str:
        name = self.pattern.replace(USER_FIELD, user)
        taken = self.lookup(name)
        # A system account has this name, so that it cannot be created.
        return f"useradd --create-home {name}" if taken is None else f"{name} is an account of the system"

    def _existing(self, name: str, why: str) -> Account:
        account = self.lookup(name)
        if account is None:
            raise LaunchRefused(f"there is no account {name} on this machine, although {why}: ask an operator")
        return account


def own_account() -> Account:
    """The server's own account, by number: it may have no entry in the account database."""
    uid, gid = os.getuid(), os.getgid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(name=str(uid), uid=uid, gid=gid, groups=tuple(os.getgroups()))
    return Account(name=entry.pw_name, uid=uid, gid=gid, groups=tuple(os.getgroups()), home=entry.pw_dir)
