"""How the processes of jobs are kept apart from the server and from each other: the settings that engines get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from corral.engines.attempts.accounts import Account, AccountRules


class ShareLimits(Protocol):
    """A program that limits jobs to their shares of a GPU."""

    def pipe_of(self, account: Account | None) -> str:
        """The directory in which programs of the account reach it; None is the server's own account. "" if it does not
        run: then shares are not enforced."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """How jobs are kept apart from the server and from each other."""

    #: None: jobs run as the server's own account
    accounts: AccountRules | None = None
    #: below it, the path to jobs' directories may be opened for their accounts
    top: str = ""
    #: processes and threads of one instance; 0 means no limit
    max_processes: int = 0
    #: setuid programs and file capabilities give no privileges to jobs that run as another account than the server
    no_new_privileges: bool = True
    #: limits programs to their shares of a GPU; None: shares are not enforced
    share_limits: ShareLimits | None = None
    #: directories that every container sees, read-only
    shared: tuple[str, ...] = ()
