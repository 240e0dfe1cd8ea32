"""How the processes of jobs are kept apart from the server and from each other: the settings that engines get."""

from __future__ import annotations

from dataclasses import dataclass

from corral.engines.attempts.accounts import AccountRules


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
    #: where NVIDIA's MPS listens; "" without it
    mps_directory: str = ""
    #: directories that every container sees, read-only
    shared: tuple[str, ...] = ()
