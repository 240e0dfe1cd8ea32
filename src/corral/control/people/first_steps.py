"""First steps on a new server: what an operator, or a scientist, does first, and which of it is done.

Whether a step is done follows from the store and the fleet; nothing is written when it happens. Stored is only that a
user does not want to see the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Transaction
from corral.control.records import CredentialKind, Function, JobFilter
from corral.core.model import JobState

_DISMISSED = "yes"


class Step(StrEnum):
    #: the one-time password is replaced
    PASSWORD = "password"
    #: at least one GPU is known
    GPUS = "gpus"
    #: a job has completed: of any user for an operator, the user's own for a scientist
    JOB = "job"
    #: a second person, or a provider through which people sign in
    PEOPLE = "people"
    #: a channel for alerts
    CHANNEL = "channel"
    #: the configuration names a place for backups
    BACKUP = "backup"
    #: the user has submitted a job
    SUBMIT = "submit"
    #: the user has a token, with which the command line and programs sign in
    TOKEN = "token"


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """Facts that are not in the store."""

    gpus: int
    backs_up: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstSteps:
    #: in the order in which they are done best; none if the user has dismissed them
    steps: tuple[tuple[Step, bool], ...]
    dismissed: bool


def first_steps(tx: Transaction, caller: Caller, server: Server) -> FirstSteps:
    if tx.meta.get(_key(caller.name)) == _DISMISSED:
        return FirstSteps(steps=(), dismissed=True)
    steps = _of_operator(tx, caller, server) if caller.is_operator else _of_scientist(tx, caller)
    return FirstSteps(steps=steps, dismissed=False)


def dismiss(work: Work, caller: Caller, *, dismissed: bool) -> None:
    """Hides the list from the user, or shows it again."""
    value = _DISMISSED if dismissed else ""
    if (work.tx.meta.get(_key(caller.name)) or "") != value:
        work.tx.meta.put(_key(caller.name), value)


def forget(work: Work, user: str) -> None:
    """A later user of this name sees the list."""
    if work.tx.meta.get(_key(user)):
        work.tx.meta.put(_key(user), "")


def _of_operator(tx: Transaction, caller: Caller, server: Server) -> tuple[tuple[Step, bool], ...]:
    user = tx.people.user(caller.name)
    return (
        (Step.PASSWORD, user is not None and not user.must_change_password),
        (Step.GPUS, server.gpus > 0),
        # Usage outlives the jobs that are deleted.
        (Step.JOB, bool(tx.usage.completed(1))),
        (Step.PEOPLE, len(tx.people.users()) > 1 or any(provider.enabled for provider in tx.providers.all())),
        (Step.CHANNEL, bool(tx.channels.all())),
        (Step.BACKUP, server.backs_up),
    )


def _of_scientist(tx: Transaction, caller: Caller) -> tuple[tuple[Step, bool], ...]:
    jobs = tx.jobs.counts(JobFilter(user=caller.name))
    steps = [(Step.SUBMIT, bool(jobs)), (Step.JOB, JobState.COMPLETED in jobs)]
    if caller.may(Function.TOKENS):
        steps.append((Step.TOKEN, bool(tx.credentials.of_user(caller.name, CredentialKind.TOKEN))))
    return tuple(steps)


def _key(user: str) -> str:
    return f"first-steps.{user}"
