"""How far jobs are kept apart on this machine: whose account they get, and what of the server's home they can reach.

A server that does not run as root gives jobs its own account, whatever the settings say. One that does gives each user
an account of the machine, and root's own only where that is allowed. Where nothing was said, the first operator has
root's, who has started this server as root; others have it only if no other account could reach what a job needs, as on
a machine where everything lies in root's home: better told than a platform on which nothing runs.
"""

from __future__ import annotations

import logging
import os
import sys

from corral.engines.local.accounts import AccountRules, own_account
from corral.engines.local.instance_specs import Isolation
from corral.engines.local.mps import start_mps
from corral.engines.local.places import barrier
from corral.server.settings import FIRST_USER, Settings

log = logging.getLogger("corral.server")

#: What of the home jobs have to reach: their directories, their run directories, what they mount.
_PASSABLE = ("jobs", "local", "slurm", "volumes", "scratch", "objects", "dataset-cache")


def isolation_of(settings: Settings, *, is_root: bool | None = None) -> Isolation:
    as_root = os.geteuid() == 0 if is_root is None else is_root
    accounts = account_rules(settings) if as_root else None
    if not as_root and _is_set(settings):
        log.warning("local.run_as has no effect: the server does not run as root, so jobs run as its own account")
    return Isolation(
        accounts=accounts,
        top=str(settings.home),
        max_processes=settings.local.max_processes or 0,
        shared=(str(settings.helper_path),),
        mps_directory=start_mps(str(settings.home / "local" / "mps"), os.environ) if settings.local.mps else "",
    )


def account_rules(settings: Settings) -> AccountRules | None:
    """Of a server that runs as root; None means that jobs run as root too."""
    local = settings.local
    is_set = _is_set(settings)
    users = dict(local.run_as.users)
    if local.allow_root and not is_set:
        return None
    if local.allow_root is None and not is_set:
        blocked = _out_of_reach(settings)
        if blocked is not None:
            log.warning(
                "jobs run as root, because other accounts cannot reach %s: set CORRAL_HOME to a place that everybody "
                "can pass and use a Python outside of it, or forbid this with local.allow_root: false",
                blocked,
            )
            return None
        users = {FIRST_USER: own_account().name}
    return AccountRules(
        pattern=local.run_as.account,
        users=users,
        default=local.run_as.default,
        allow_root=local.allow_root is True or (local.allow_root is None and not is_set),
    )


def _out_of_reach(settings: Settings) -> str | None:
    """What keeps other accounts from a job's directories, or from the Python that jobs find."""
    interpreter = os.path.realpath(sys.executable)
    for needed in (settings.home.parent, sys.executable, interpreter):
        blocked = barrier(str(needed))
        if blocked is not None:
            return blocked
    return None if os.stat(interpreter).st_mode & 0o005 == 0o005 else interpreter


def _is_set(settings: Settings) -> bool:
    return any(key.startswith("local.run_as") for key in settings.sources)


def keep_private() -> None:
    """From now on nothing that the server writes can be read by other accounts."""
    os.umask(0o077)


def let_jobs_in(settings: Settings) -> None:
    """Let jobs' accounts pass through the home to what is theirs, and see nothing else of it."""
    helper = settings.helper_path
    for entry in settings.home.iterdir():
        if entry.name not in (*_PASSABLE, helper.name) and not entry.is_symlink():
            entry.chmod(entry.stat().st_mode & 0o700)
    for path in (helper, *helper.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    settings.home.chmod(0o711)
    blocked = barrier(str(settings.home))
    if blocked is not None:
        log.warning(
            "jobs run as accounts that cannot pass %s, and so cannot use their directories: set CORRAL_HOME to a place "
            "that everybody can pass, such as /var/lib/corral, or run chmod o+x %s",
            blocked,
            blocked,
        )


def describe(isolation: Isolation) -> str:
    """For the log at the start: who jobs are."""
    rules = isolation.accounts
    if rules is None:
        return f"jobs run as the server's own account (uid {os.geteuid()})"
    named = f", {len(rules.users)} users as local.run_as names them"
    if len(rules.users) <= 3:
        named = "".join(f", those of {user} as {account}" for user, account in rules.users.items())
    default = f", others as {rules.default}" if rules.default else ", others are refused"
    return f"jobs run as the account {rules.pattern} of this machine{named}{default}"
