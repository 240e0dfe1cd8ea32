"""Isolation of jobs on this machine: the accounts of jobs, and the parts of the server's home that they can reach.

A server that does not run as root runs jobs with its own account, whatever the settings say: such an installation is
for one user, because jobs can change everything that the server stores. A server that runs as root runs each user's
jobs with an account of the machine, and with root's only if that is allowed. By default, only the first operator, who
has started this server as root, has root's account; jobs of other users that could only run as root are refused.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from enum import StrEnum

from corral.core.counts import counted
from corral.engines.attempts.accounts import USER_FIELD, AccountRules, own_account
from corral.engines.attempts.isolation import Isolation
from corral.engines.attempts.job_places import barrier
from corral.engines.local.mps import PROGRAM, Mps
from corral.engines.registry import ENGINES
from corral.server.demo.sample_setup import PEOPLE
from corral.server.settings.settings import FIRST_USER, Settings

log = logging.getLogger("corral.server")

#: Parts of the home that jobs need: their directories, their run directories, their mounts.
_PASSABLE = ("jobs", *ENGINES, "volumes", "scratch", "objects", "dataset-cache")


class Separation(StrEnum):
    """Isolation of the jobs of different users from each other and from the server."""

    #: every user has an account of the machine
    ACCOUNTS = "accounts"
    #: jobs have other accounts than the server, and some users share one
    SHARED_ACCOUNTS = "shared_accounts"
    #: jobs have the server's own account: for one user, or for users who trust each other completely
    SINGLE_USER = "single_user"


@dataclass(frozen=True, kw_only=True, slots=True)
class Separated:
    """The isolation of jobs as text for the log, the About page and `corral doctor`."""

    separation: Separation
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuShares:
    """Whether jobs with a share of a GPU are limited to it, as text for users."""

    enforced: bool
    detail: str


def gpu_shares(settings: Settings, isolated: Isolation) -> GpuShares:
    """Starts the program that limits shares, to see whether it runs. This takes some seconds on a machine with GPUs."""
    engines = {cluster.engine for cluster in settings.cluster}
    if "local" not in engines:
        detail = "not enforced by corral: shares are what the cluster makes of them"
    elif settings.local.virtual_gpus or settings.local.virtual_nodes:
        detail = "not enforced: the GPUs are virtual"
    elif isolated.share_limits is None:
        detail = "not enforced: programs must limit themselves (local.mps lets NVIDIA's MPS limit them)"
    elif not isolated.share_limits.pipe_of(None):
        detail = f"not enforced: {PROGRAM} does not run on this machine"
    else:
        others = "" if engines == {"local"} else ", on the local cluster"
        detail = f"enforced by NVIDIA's MPS{others}, except for jobs in images"
        return GpuShares(enforced=True, detail=detail)
    return GpuShares(enforced=False, detail=detail)


def isolation_of(settings: Settings, *, is_root: bool | None = None) -> Isolation:
    as_root = os.geteuid() == 0 if is_root is None else is_root
    accounts = account_rules(settings) if as_root else None
    if not as_root and _is_set(settings):
        log.warning("local.run_as has no effect: the server does not run as root, so jobs run as its own account")
    if accounts is not None:
        _warn(settings, accounts)
    return Isolation(
        accounts=accounts,
        top=str(settings.home),
        max_processes=settings.local.max_processes or 0,
        no_new_privileges=settings.local.no_new_privileges,
        shared=(str(settings.helper_path),),
        share_limits=Mps(str(settings.home / "local" / "mps"), os.environ) if settings.local.mps else None,
    )


def _warn(settings: Settings, rules: AccountRules) -> None:
    """Warnings about configurations that an operator may not expect."""
    if rules.barrier:
        log.warning(
            "jobs of all users but %s are refused, because other accounts than root cannot reach %s: set CORRAL_HOME "
            "to a place that every account can pass and use a Python outside of it, or set local.allow_root: true if "
            "every user may be root on this machine",
            FIRST_USER,
            rules.barrier,
        )
        if settings.is_demo:
            log.warning("jobs of the demo's own users run as root: give none of these users a password")
    if rules.default and not rules.share_default and "local.run_as.default" in settings.sources:
        log.warning("local.run_as.default has no effect without local.run_as.share_default: true")


def account_rules(settings: Settings) -> AccountRules | None:
    """The rules of a server that runs as root; None means that jobs run as root, too."""
    local = settings.local
    run_as = local.run_as
    is_set = _is_set(settings)
    if local.allow_root and not is_set:
        return None
    blocked = ""
    users = dict(run_as.users)
    if local.allow_root is None and not is_set:
        blocked = _out_of_reach(settings) or ""
        users = {FIRST_USER: own_account().name}
    if settings.is_demo:
        users = {**_accounts_of_demo(settings, blocked), **users}
    return AccountRules(
        pattern=run_as.account,
        users=users,
        default=run_as.default,
        share_default=run_as.share_default,
        allow_root=local.allow_root is True or (local.allow_root is None and not is_set),
        barrier=blocked,
    )


def _accounts_of_demo(settings: Settings, blocked: str) -> dict[str, str]:
    """The demo's users are invented: they have no account of the machine and cannot sign in. Only the demo itself
    submits their jobs."""
    account = own_account().name if blocked else settings.local.run_as.default or "nobody"
    return {name: account for name, _ in PEOPLE}


def _out_of_reach(settings: Settings) -> str | None:
    """The directory that other accounts cannot pass on the way to a job's directories or to Python; "" if none."""
    interpreter = os.path.realpath(sys.executable)
    for needed in (settings.home.parent, sys.executable, interpreter):
        blocked = barrier(str(needed))
        if blocked is not None:
            return blocked
    return None if os.stat(interpreter).st_mode & 0o005 == 0o005 else interpreter


def _is_set(settings: Settings) -> bool:
    return any(key.startswith("local.run_as") for key in settings.sources)


def keep_private() -> None:
    """Set the umask: files that the server writes from now on cannot be read by other accounts."""
    os.umask(0o077)


def close_home(settings: Settings) -> None:
    """Close the home to other accounts of the machine, if jobs have the server's own account."""
    mode = settings.home.stat().st_mode & 0o777
    if not mode & 0o077:
        return
    try:
        settings.home.chmod(mode & 0o700)
    except OSError as error:
        log.warning("other accounts of this machine may read %s: chmod go= failed: %s", settings.home, error.strerror)


def open_home_to_jobs(settings: Settings) -> None:
    """Gives jobs' accounts passage through the home to their own directories, without access to anything else."""
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
            "that every account can pass, such as /var/lib/corral, or run chmod o+x %s",
            blocked,
            blocked,
        )


def separated(rules: AccountRules | None) -> Separated:
    if rules is None:
        return Separated(
            separation=Separation.SINGLE_USER,
            detail=f"single-user: jobs run as the server's own account (uid {os.geteuid()}) and can change everything "
            "that the server stores; only allow people whom you would let use that account",
        )
    named = f", {counted(len(rules.users), 'user')} as local.run_as names them"
    if len(rules.users) <= 3:
        named = "".join(f", jobs of {user} as {own}" for user, own in rules.users.items())
    if rules.has_shared_pattern:
        detail = f"jobs of all users run as the account {rules.pattern}{named}"
        return Separated(separation=Separation.SHARED_ACCOUNTS, detail=detail)
    accounts = "of their user's name"
    if rules.pattern != USER_FIELD:
        accounts = f"{rules.pattern.replace(USER_FIELD, 'NAME')} (NAME is their user's name)"
    detail = f"jobs run as the account {accounts} on this machine{named}"
    is_shared = len(set(rules.users.values())) < len(rules.users)
    if rules.barrier:
        detail += f", jobs of other users are refused: accounts other than root cannot reach {rules.barrier}"
    elif rules.share_default and rules.default:
        is_shared = True
        detail += f", jobs of other users share the account {rules.default}"
    else:
        detail += ", jobs of other users are refused"
    return Separated(separation=Separation.SHARED_ACCOUNTS if is_shared else Separation.ACCOUNTS, detail=detail)
