"""Apps: web programs in jobs of every kind, at origins of their own like workbenches. Decides what runs in the job, and
which other users may open it.

The job's command serves the page; `engines/workbenches/app_host.py` starts it and lets the server in.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from corral.control.errors import Forbidden, Invalid, NotFound, OverLimit
from corral.control.jobs import jobs
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Transaction
from corral.control.records import AppShare, AppShareKind, JobRecord, JobSpec
from corral.core.counts import counted
from corral.core.jobs.apps import KNOWN_APPS
from corral.core.model import Job

MAX_SHARES = 100
MAX_LINK_SECONDS = 30 * 86400.0


def address_of(job_id: str) -> str:
    """The path of the page at the console's address, which leads to the app's own origin."""
    return f"/apps/{job_id}/"


def title_of(spec: JobSpec) -> str:
    """The name of the page for users."""
    if spec.app_name:
        return spec.app_name
    known = KNOWN_APPS.get(spec.app or "")
    return known.title if known is not None else spec.app or f"port {spec.app_port}"


def host_settings(record: JobRecord, command: Sequence[str], relay: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings for the program beside the app. On another machine than the server's, a relay listens."""
    known = KNOWN_APPS.get(record.spec.app or "")
    return {
        "command": list(command),
        "env": dict(known.env) if known is not None else {},
        "is_known": known is not None,
        "has_socket": known is not None and known.has_socket,
        "port": record.spec.app_port,
        # The directory `work` is for workbenches.
        "workdir": record.spec.workdir or record.job.id,
        "relay": relay,
    }


# ---------------------------------------------------------------- access of other users


def own_app(tx: Transaction, job: Job) -> JobSpec:
    """The spec of a job with an app. Raises NotFound."""
    record = tx.jobs.get(job.id)
    if record is None or not record.spec.has_app:
        raise NotFound(f"job {job.name} has no app: submit it with --app or --port", field="job")
    return record.spec


def is_shared_with(tx: Transaction, job_id: str, user: str, link_hash: str, now: float) -> bool:
    """Whether a user who is not the owner may open the app: as a member of a group, or by a link."""
    record = tx.people.user(user)
    for share in tx.app_shares.of_job(job_id):
        if not share.is_valid(now):
            continue
        if share.kind is AppShareKind.LINK and link_hash and hmac.compare_digest(share.secret_hash, link_hash):
            return True
        if share.kind is AppShareKind.GROUP and record is not None and share.name == record.group:
            return True
    return False


def share_with_group(work: Work, caller: Caller, ref: str, group: str, *, seconds: float | None = None) -> AppShare:
    """Shares the app with the members of a group, for some time or until the share is removed."""
    if all(known.name != group for known in work.tx.people.groups()):
        raise NotFound(f"there is no group {group[:80]!r}", field="group")
    return _share(work, caller, ref, AppShareKind.GROUP, group, seconds=seconds)


def share_by_link(work: Work, caller: Caller, ref: str, link_id: str, secret_hash: str, *, seconds: float) -> AppShare:
    """Shares the app with every user who has the link, for some time."""
    if seconds > MAX_LINK_SECONDS:
        raise Invalid(
            f"a link lasts at most {MAX_LINK_SECONDS / 86400:g} days", field="lasts", limit=round(MAX_LINK_SECONDS)
        )
    return _share(work, caller, ref, AppShareKind.LINK, link_id, seconds=seconds, secret_hash=secret_hash)


def unshare(work: Work, caller: Caller, ref: str, kind: AppShareKind, name: str) -> None:
    job = _mine(work, caller, ref)
    found = [share for share in work.tx.app_shares.of_job(job.id) if (share.kind, share.name) == (kind, name)]
    if not found:
        raise NotFound(f"the app of {job.name} has no share with {kind} {name[:80]!r}", field="share")
    work.tx.app_shares.delete(found[0])
    work.record(caller, "app.unshared", job.id, owner=job.user, detail={kind.value: name})


def _share(
    work: Work,
    caller: Caller,
    ref: str,
    kind: AppShareKind,
    name: str,
    *,
    seconds: float | None,
    secret_hash: str = "",
) -> AppShare:
    job = _mine(work, caller, ref)
    held = work.tx.app_shares.of_job(job.id)
    for old in held:
        if not old.is_valid(work.now):
            work.tx.app_shares.delete(old)
    valid = [share for share in held if share.is_valid(work.now) and (share.kind, share.name) != (kind, name)]
    if len(valid) >= MAX_SHARES:
        raise OverLimit(
            f"the app has {counted(len(valid), 'share')} already: remove one", held=len(valid), limit=MAX_SHARES
        )
    share = AppShare(
        job_id=job.id,
        kind=kind,
        name=name,
        secret_hash=secret_hash,
        created_at=work.now,
        expires_at=None if seconds is None else work.now + seconds,
    )
    work.tx.app_shares.save(share)
    work.record(caller, "app.shared", job.id, owner=job.user, detail={kind.value: name, "until": share.expires_at})
    return share


def _mine(work: Work, caller: Caller, ref: str) -> Job:
    """A job of the caller's own: operators do not share the apps of others."""
    job = jobs.own_job(work, caller, ref)
    if job.user != caller.name:
        raise Forbidden(f"only {job.user} shares the app of {job.name}")
    own_app(work.tx, job)
    return job
