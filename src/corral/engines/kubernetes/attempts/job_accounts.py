"""The account of the operating system that a job's processes have in their pod, and its job's directories."""

from __future__ import annotations

import os
from dataclasses import dataclass

from corral.control.ports import LaunchOrder
from corral.engines.attempts.accounts import AccountRules
from corral.engines.attempts.environment import job_directories
from corral.engines.attempts.instance_messages import Owner
from corral.engines.attempts.job_places import give_to, open_path


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccount:
    uid: int
    gid: int


class JobAccounts:
    """A job has its user's account if the server separates users, else that of the server. Root is never used: pods run
    under the `restricted` standard."""

    def __init__(self, default: JobAccount, rules: AccountRules | None = None, top: str = "") -> None:
        """Below `top`, the path to a job's directories may be opened for its account."""
        self._default = default
        self._rules = rules
        self._top = top

    def account_of(self, order: LaunchOrder) -> JobAccount:
        """Raises LaunchRefused."""
        if self._rules is not None:
            account = self._rules.account_of(order.os_user or order.user)
            if account.uid != 0:
                return JobAccount(uid=account.uid, gid=account.gid)
        return self._default

    def give(self, order: LaunchOrder, account: JobAccount) -> None:
        """Give the job's directories to its account. Only root can."""
        own = job_directories(order)
        if os.geteuid() != 0 or not self._top or not own:
            return
        give_to(own, Owner(name=str(account.uid), uid=account.uid, gid=account.gid, groups=[account.gid]))
        for path in own:
            open_path(path, self._top)
