"""Access to Slurm through slurmrestd: one request for all jobs or all nodes, never one for each.

The server then needs neither munge nor a shell on the cluster, only an address and a token. Jobs of other users than
the token's are submitted in that user's name, which Slurm allows to tokens of root and of its own account.
"""

from __future__ import annotations

import json
import logging
import os
import pwd
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from corral.engines.slurm.cluster.partitions import Partition, partitions_of
from corral.engines.slurm.slurm_api import rest_format
from corral.engines.slurm.slurm_api.commands import (
    PATIENCE_SECONDS,
    Account,
    SlurmCommands,
    SlurmRefused,
    SlurmUnavailable,
    Submission,
    is_passing,
)
from corral.engines.slurm.slurm_api.rest_format import Answer, answer_of, is_classic
from corral.engines.slurm.slurm_api.rest_tokens import Token, Tokens
from corral.engines.slurm.slurm_api.slurm_records import (
    JobOwner,
    SlurmJob,
    SlurmNode,
    Unreadable,
    jobs_of,
    nodes_of,
    reserved_in,
)

log = logging.getLogger("corral.engines.slurm")

_Answer = TypeVar("_Answer")

#: Slurm interprets earlier times differently.
_FIRST_TIME = 1_000_000_000
#: When squeue is tried again after it failed.
_AGAIN_SECONDS = 300.0


class SlurmRest:
    """Implements `Slurm` with slurmrestd. Operations that its version lacks are done by `commands`, if they are
    installed."""

    daemon = "slurmrestd"

    def __init__(
        self,
        *,
        url: str,
        tokens: Tokens,
        commands: SlurmCommands,
        user: str = "",
        version: str = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Without `user`, the user that the token names; without `version`, the newest that both sides support."""
        base, socket = rest_format.parse_place(url)
        self._place = url
        self._tokens = tokens
        self._commands = commands
        self._user = user
        self._fixed = version
        self._found = ""
        self._lock = threading.Lock()
        self._no_squeue_until = 0.0
        #: the number of requests to slurmrestd, by kind; a benchmark reads it
        self.calls: dict[str, int] = {}
        # Connections are not reused: each request names its user, and requests of two users must never be mixed up.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(
            base_url=base,
            transport=transport or httpx.HTTPTransport(uds=socket, limits=limits),
            timeout=PATIENCE_SECONDS,
            headers={"Accept": "application/json", "Connection": "close"},
            trust_env=False,
        )

    def nodes(self) -> list[SlurmNode]:
        return self._read(nodes_of, self._asked("GET", "slurm/{}/nodes"))

    def partitions(self) -> list[Partition]:
        return partitions_of(self._asked("GET", "slurm/{}/partitions"))

    def live(self) -> list[SlurmJob]:
        """The live jobs, by squeue if it shows as much: slurmrestd lists every job that the controller remembers."""
        if self._reads_squeue():
            try:
                return self._commands.live()
            except (SlurmUnavailable, SlurmRefused) as problem:
                log.info("squeue cannot be used, using slurmrestd: %s", problem)
                self._no_squeue_until = time.monotonic() + _AGAIN_SECONDS
        return [job for job in self.jobs() if not job.is_over]

    def jobs(self) -> list[SlurmJob]:
        return self._read(jobs_of, self._asked("GET", "slurm/{}/jobs"))

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        if not job_ids:
            return []
        query = rest_format.accounting_query(job_ids, self._version())
        return self._accounted(query, lambda: self._commands.ended(job_ids))

    def named(self, name: str, since: float) -> list[SlurmJob]:
        query = {"job_name": name, "start_time": f"uts{max(_FIRST_TIME, int(since))}"}
        return self._accounted(query, lambda: self._commands.named(name, since))

    def reserved(self, name: str) -> list[str]:
        document = self._asked("GET", f"slurm/{{}}/reservation/{quote(name, safe='')}")
        return self._read(lambda found: reserved_in(found, time.time()), document)

    def submitter(self) -> JobOwner:
        """The token's user, who need not have an account on this machine. Without a token, at a socket, slurmrestd does
        not report as which user it submits: then only the job ids count."""
        token = self._tokens.current()
        if token is None or not (name := self._user or token.user):
            return JobOwner()
        try:
            return JobOwner(uid=pwd.getpwnam(name).pw_uid, name=name)
        except KeyError:
            return JobOwner(name=name)

    def submit(self, job: Submission) -> int:
        user = self._name_of(job.run_as) if job.run_as is not None else ""
        try:
            body = rest_format.job_body(job, self._version())
        except ValueError as error:
            raise SlurmRefused(str(error)) from None
        # Not retried here: the first request may have succeeded, and only the engine can find out.
        document = self._asked("POST", "slurm/{}/job/submit", body=body, user=user, again=False)
        try:
            return int(document["job_id"])
        except (KeyError, ValueError, TypeError):
            raise SlurmUnavailable("slurmrestd gave no job id") from None

    def beside(
        self, job_id: int, node: str, *, has_terminal: bool, has_input: bool
    ) -> tuple[list[str], dict[str, str]]:
        # slurmrestd starts no steps.
        return self._commands.beside(job_id, node, has_terminal=has_terminal, has_input=has_input)

    def signal(self, job_id: int, name: str, *, to_steps: bool) -> None:
        query = rest_format.signal_query(name, to_steps=to_steps, version=self._version())
        self._unless_over("DELETE", f"slurm/{{}}/job/{job_id}", query=query)

    def cancel(self, *job_ids: int, only_pending: bool = False) -> None:
        for path in (f"slurm/{{}}/job/{job_id}" for job_id in job_ids):
            # Only a pending job can be deferred, and a deferred job cannot begin before it is cancelled.
            body = rest_format.defer_body(time.time(), self._version()) if only_pending else None
            if body is None or self._unless_over("POST", path, body=body):
                self._unless_over("DELETE", path)

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None:
        if is_classic(self._version()):
            change = lambda: self._commands.set_node(name, is_withheld=is_withheld, reason=reason)  # noqa: E731
            self._by_command("scontrol", change, "cannot change nodes")
            return
        body = rest_format.node_body(is_withheld=is_withheld, reason=reason)
        self._asked("POST", f"slurm/{{}}/node/{name}", body=body)

    # -------------------------------------------------------------------------------------------- inside

    def _accounted(self, query: Mapping[str, Any], by_command: Callable[[], list[SlurmJob]]) -> list[SlurmJob]:
        answer = self._answer("GET", "slurmdb/{}/jobs", query={**query, "skip_steps": "true"})
        if answer.status == 404:
            return self._by_command("sacct", by_command, "offers no accounting")
        if rest_format.NO_DATABASE in answer.codes and self._commands.has("sacct"):
            return by_command()
        return self._read(jobs_of, {"jobs": [], **self._good(answer, "slurmdb/jobs")})

    def _reads_squeue(self) -> bool:
        """Whether squeue is installed, and shows this account what slurmrestd shows the token's user."""
        if time.monotonic() < self._no_squeue_until or not self._commands.has("squeue"):
            return False
        if os.geteuid() == 0:
            return True
        token = self._tokens.current()
        request_user = self._user or (token.user if token is not None else "")
        return request_user == self._name_of(Account(uid=os.geteuid(), gid=os.getegid()))

    def _read(self, read: Callable[[Mapping[str, Any]], _Answer], document: Mapping[str, Any]) -> _Answer:
        try:
            return read(document)
        except Unreadable as problem:
            raise SlurmUnavailable(f"slurmrestd at {self._place}: {problem}") from None

    def _by_command(self, program: str, run: Callable[[], _Answer], why: str) -> _Answer:
        if not self._commands.has(program):
            raise SlurmRefused(f"slurmrestd {why} ({self._version()}), and {program} is not here")
        return run()

    def _version(self) -> str:
        """Queried once, and again if its paths no longer exist."""
        if self._fixed:
            return self._fixed
        with self._lock:
            if not self._found:
                document = self._good(self._sent("GET", "openapi/v3"), "openapi/v3")
                found = rest_format.best_version(document)
                if found is None:
                    known = ", ".join(rest_format.VERSIONS)
                    raise SlurmUnavailable(f"slurmrestd at {self._place} offers none of {known}")
                self._found = found
            return self._found

    def _unless_over(self, method: str, path: str, **options: Any) -> bool:
        """Whether it was done; does nothing for a job that is over."""
        answer = self._answer(method, path, **options)
        if answer.is_over:
            return False
        self._good(answer, path)
        return True

    def _asked(self, method: str, path: str, **options: Any) -> Mapping[str, Any]:
        return self._good(self._answer(method, path, **options), path)

    def _good(self, answer: Answer, path: str) -> Mapping[str, Any]:
        if answer.is_good:
            return answer.document
        if answer.is_the_token:
            raise SlurmUnavailable(f"slurmrestd rejects the token: {answer.message}")
        if answer.status == 404 and not answer.codes:
            self._found = ""
            raise SlurmUnavailable(f"slurmrestd does not know {path.format(self._fixed or 'its version')}")
        if rest_format.NO_DATABASE in answer.codes:
            raise SlurmUnavailable(f"{answer.message}: accounting does not answer slurmrestd")
        if answer.is_unspecified or is_passing(answer.message):
            raise SlurmUnavailable(f"{answer.message}: the controller does not answer slurmrestd, or the token is bad")
        raise SlurmRefused(answer.message)

    def _answer(self, method: str, path: str, *, again: bool = True, **options: Any) -> Answer:
        path = path.format(self._version())
        token = self._tokens.current()
        answer = self._sent(method, path, token=token, **options)
        if answer.may_be_the_token and self._tokens.renew(token) and (again or answer.status == 401):
            answer = self._sent(method, path, **options)
        return answer

    def _sent(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        user: str = "",
        token: Token | None = None,
    ) -> Answer:
        token = token or self._tokens.current()
        kind = path.split("/")[-1] if not path.split("/")[-1].isdigit() else "job"
        self.calls[kind] = self.calls.get(kind, 0) + 1
        try:
            got = self._client.request(method, f"/{path}", params=query, json=body, headers=self._headers(token, user))
        except httpx.TimeoutException:
            raise SlurmUnavailable(
                f"slurmrestd at {self._place} did not answer within {PATIENCE_SECONDS:g} s"
            ) from None
        except httpx.HTTPError as error:
            raise SlurmUnavailable(f"slurmrestd at {self._place}: {error or type(error).__name__}") from None
        # Names of jobs may have any encoding, or be cut between the bytes of a letter.
        text = got.content.decode(errors="replace")
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        return answer_of(got.status_code, document, text)

    def _headers(self, token: Token | None, user: str) -> dict[str, str]:
        if token is None:
            if user:
                raise SlurmRefused(f"without a token slurmrestd cannot act in the name of {user}")
            return {}
        name = user or self._user or token.user
        return {"X-SLURM-USER-TOKEN": token.text, **({"X-SLURM-USER-NAME": name} if name else {})}

    def _name_of(self, account: Account) -> str:
        try:
            return pwd.getpwuid(account.uid).pw_name
        except KeyError:
            raise SlurmRefused(f"there is no account with the number {account.uid} here") from None
