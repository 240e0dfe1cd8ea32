"""Access to Slurm through its own programs: one call for all jobs or all nodes, never one for each."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from corral.engines.attempts.clean_text import plain
from corral.engines.slurm.cluster.partitions import Partition, partitions_in
from corral.engines.slurm.slurm_api.hostlist import expand
from corral.engines.slurm.slurm_api.slurm_records import (
    JobOwner,
    SlurmJob,
    SlurmNode,
    Unreadable,
    errors_of,
    jobs_of,
    nodes_of,
)
from corral.engines.slurm.slurm_api.squeue_table import VARIABLE, jobs_in, new_nonce, table_format

log = logging.getLogger("corral.engines.slurm")

#: A busy controller answers late; one that is down never does.
PATIENCE_SECONDS = 20.0
#: The exit code of srun where it has started nothing.
SRUN_FAILED = 241
#: Errors of a controller that cannot be reached at the moment, or is overloaded.
_PASSING = (
    "Unable to contact slurm controller",
    "Connection refused",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "temporarily unable",
    "Transport endpoint",
    "backup controller",
    "Slurm controller",
    "Slurm temporarily",
    "Communication connection failure",
    "Resource temporarily unavailable",
    "slurmdbd",
    "Munge decode failed",
    "Protocol authentication error",
)
#: All nodes, including hidden ones, with the GPUs in use. Slurm 22.05 has no such JSON, and reports that without its
#: controller.
_NODES = ("scontrol", "--all", "--details", "show", "nodes", "--json")
_OLD_NODES = ("sinfo", "--json")
_NO_SUCH_OPTION = "unrecognized option"


class SlurmUnavailable(Exception):
    """The controller did not answer: try again later."""


class SlurmRefused(Exception):
    """Slurm refuses this; the message is Slurm's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The submitter, if it is not the server's own account."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """One job for Slurm."""

    name: str
    comment: str
    #: the script for the first node, with its #! line
    script: str
    nodes: tuple[str, ...]
    #: on each node, by Slurm's name of the type; "" for any type
    gpus: Mapping[str, int] = field(default_factory=dict)
    cpus: int = 1
    #: on each node; None leaves it to Slurm
    memory_mib: int | None = None
    #: UNLIMITED for no limit; None leaves it to Slurm
    minutes: int | None = None
    workdir: str = "/"
    output: str = "/dev/null"
    partition: str = ""
    account: str = ""
    qos: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    run_as: Account | None = None
    extra: tuple[str, ...] = ()


class Slurm(Protocol):
    """The operations that the engine needs. All raise SlurmUnavailable and SlurmRefused."""

    #: the daemon that answers
    daemon: str = "slurmctld"

    def nodes(self) -> list[SlurmNode]: ...

    def partitions(self) -> list[Partition]: ...

    def live(self) -> list[SlurmJob]:
        """Jobs that are pending, running or completing. Mostly without names and comments."""

    def jobs(self) -> list[SlurmJob]:
        """All jobs that the controller knows: live ones, and those that ended a short while ago. Expensive if there are
        many."""

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        """The accounting records of these jobs; empty without accounting."""

    def named(self, name: str, since: float) -> list[SlurmJob]:
        """The accounting records of jobs with this name since a time; empty without accounting."""

    def reserved(self, name: str) -> list[str]:
        """The nodes of a reservation, none before it has begun. Refused if there is no reservation of that name."""

    def submitter(self) -> JobOwner:
        """The owner of jobs that are submitted without `run_as`."""

    def submit(self, job: Submission) -> int: ...

    def beside(
        self, job_id: int, node: str, *, has_terminal: bool, has_input: bool
    ) -> tuple[list[str], dict[str, str]]:
        """The words before a command that shares a node of a running job with its steps, and the environment in which
        the owner of the job runs them. Refused where Slurm's programs are missing."""

    def signal(self, job_id: int, name: str, *, to_steps: bool) -> None:
        """Signals the script of a job, or its steps. Does nothing for a job that is over."""

    def cancel(self, *job_ids: int, only_pending: bool = False) -> None: ...

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None: ...


class SlurmCommands:
    """Implements `Slurm` with squeue, sinfo, sacct, sbatch, scancel and scontrol."""

    daemon = "slurmctld"

    def __init__(self, *, conf: str | None = None, programs: str | None = None) -> None:
        self._programs = programs
        #: the environment with which Slurm and its programs are found
        self._environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **({"SLURM_CONF": conf} if conf else {})}
        self._env = {**self._environment, "LANG": "C.UTF-8", "TZ": "UTC"}
        #: how often the controller was queried, by program; a benchmark reads it
        self.calls: dict[str, int] = {}
        #: the command for nodes in the version that is installed
        self._nodes: tuple[str, ...] = _NODES

    def has(self, program: str) -> bool:
        return shutil.which(self._found(program)) is not None

    def nodes(self) -> list[SlurmNode]:
        """Lists nodes. In some versions only sinfo lists nodes as JSON, in others only scontrol."""
        arguments = self._nodes  # another thread may change it meanwhile
        try:
            return nodes_of(self._json(*arguments))
        except SlurmRefused as refusal:
            if arguments != _NODES or _NO_SUCH_OPTION not in str(refusal):
                raise
            self._nodes = _OLD_NODES
            return self.nodes()
        except Unreadable as problem:
            self._nodes = _NODES
            raise SlurmUnavailable(f"{' '.join(arguments)}: {problem}") from None

    def partitions(self) -> list[Partition]:
        return partitions_in(self._run("scontrol", "--all", "--oneliner", "show", "partition"))

    def live(self) -> list[SlurmJob]:
        nonce = new_nonce()
        try:
            return jobs_in(self._run("squeue", "--noheader", env={**self._env, VARIABLE: table_format(nonce)}), nonce)
        except Unreadable as problem:
            log.info("squeue's table cannot be used, using its JSON: %s", problem)
            return [job for job in self.jobs() if not job.is_over]

    def jobs(self) -> list[SlurmJob]:
        return self._jobs("squeue", "--json", "--states=all")

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        # Of all users, but only these jobs: accounting is large. With ids there is no time limit.
        return self._accounted(f"--jobs={','.join(map(str, job_ids))}") if job_ids else []

    def named(self, name: str, since: float) -> list[SlurmJob]:
        # Times are in UTC, as the environment says.
        start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(1.0, since)))
        return self._accounted(f"--name={name}", f"--starttime={start}")

    def reserved(self, name: str) -> list[str]:
        output = self._run("scontrol", "--oneliner", "show", "reservation", name)
        # The first value of a key counts: free text of a reservation comes later.
        fields = {key: value for key, _, value in (word.partition("=") for word in reversed(output.split()))}
        return expand(fields.get("Nodes", "")) if fields.get("State") == "ACTIVE" else []

    def submitter(self) -> JobOwner:
        return JobOwner(uid=os.geteuid())

    def submit(self, job: Submission) -> int:
        options = [
            "--parsable",
            f"--job-name={job.name}",
            f"--comment={job.comment}",
            f"--nodelist={','.join(job.nodes)}",
            f"--nodes={len(job.nodes)}",
            f"--ntasks={len(job.nodes)}",
            "--ntasks-per-node=1",
            f"--cpus-per-task={job.cpus}",
            "--no-requeue",
            f"--chdir={job.workdir}",
            f"--output={job.output}",
            "--input=/dev/null",
            "--open-mode=append",
        ]
        if job.gpus:
            options.append(f"--gres={','.join(gres_options(job))}")
        if job.memory_mib is not None:
            options.append(f"--mem={job.memory_mib}M")
        if job.minutes is not None:
            options.append(f"--time={job.minutes}")
        named = {"partition": job.partition, "account": job.account, "qos": job.qos}
        options += [f"--{name}={value}" for name, value in named.items() if value]
        # The job inherits the environment of sbatch: no language, time zone or PATH of the server. Its script finds
        # Slurm's own programs where they are here, if they are not on the PATH of jobs.
        paths = (job.env.get("PATH", ""), os.path.dirname(self._found("sbatch")))
        env = {**self._environment, **job.env, "PATH": ":".join(filter(None, paths))}
        answer = self._run("sbatch", *options, *job.extra, run_as=job.run_as, env=env, script=job.script)
        try:
            return int(answer.strip().splitlines()[-1].split(";")[0])
        except (ValueError, IndexError):
            raise SlurmUnavailable(f"sbatch gave no job id: {answer.strip()!r}") from None

    def beside(
        self, job_id: int, node: str, *, has_terminal: bool, has_input: bool
    ) -> tuple[list[str], dict[str, str]]:
        if not self.has("srun"):
            raise SlurmRefused("srun is not installed on the machine of the server")
        # srun would say with each exit code but 0 that a task has exited. Its own errors have an exit code.
        options = [
            "--quiet",
            "--quiet",
            f"--jobid={job_id}",
            "--overlap",
            f"--nodelist={node}",
            "--nodes=1",
            "--ntasks=1",
        ]
        # All memory of the job, without keeping it from steps that its program starts.
        options += ["--mem=0", "--chdir=/", "--unbuffered", "--kill-on-bad-exit=0", "--job-name=corral-shell"]
        if has_terminal:
            options.append("--pty")
        elif not has_input:
            options.append("--input=none")
        return [self._found("srun"), *options], {**self._env, "SLURM_EXIT_ERROR": str(SRUN_FAILED)}

    def signal(self, job_id: int, name: str, *, to_steps: bool) -> None:
        self._unless_over("scancel", f"--signal={name}", *([] if to_steps else ["--batch"]), str(job_id))

    def cancel(self, *job_ids: int, only_pending: bool = False) -> None:
        self._unless_over("scancel", *(["--state=PENDING"] if only_pending else []), *map(str, job_ids))

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None:
        # Not RESUME: that would also set a node up that is down.
        update = ["State=DRAIN", f"Reason={reason}"] if is_withheld else ["State=UNDRAIN"]
        self._run("scontrol", "update", f"NodeName={name}", *update)

    def _unless_over(self, *arguments: str) -> None:
        try:
            self._run(*arguments)
        except SlurmRefused as refusal:
            over = ("Invalid job id", "already completing or completed", "Job/step already", "not running")
            if not any(text in str(refusal) for text in over):
                raise

    def _accounted(self, *which: str) -> list[SlurmJob]:
        return self._jobs("sacct", "--json", "--allusers", "--allocations", *which)

    def _found(self, program: str) -> str:
        """The full path, as the environment of a job has another PATH."""
        if self._programs:
            return os.path.join(self._programs, program)
        return shutil.which(program, path=self._environment["PATH"]) or os.path.join("/usr/bin", program)

    def _jobs(self, *arguments: str) -> list[SlurmJob]:
        try:
            return jobs_of(self._json(*arguments))
        except Unreadable as problem:
            raise SlurmUnavailable(f"{arguments[0]}: {problem}") from None

    def _json(self, *arguments: str) -> Mapping[str, Any]:
        text = self._run(*arguments)
        try:
            document = json.loads(text)
        except ValueError:
            raise SlurmUnavailable(f"{arguments[0]} gave no JSON: {text[:200]!r}") from None
        if not isinstance(document, Mapping):
            raise SlurmUnavailable(f"{arguments[0]} gave another JSON than expected: {text[:200]!r}")
        if problems := errors_of(document):
            raise SlurmUnavailable(f"{arguments[0]}: {problems}")
        return document

    def _run(
        self, *arguments: str, run_as: Account | None = None, env: Mapping[str, str] | None = None, script: str = ""
    ) -> str:
        program = arguments[0]
        self.calls[program] = self.calls.get(program, 0) + 1
        credentials: dict[str, Any] = {}
        if run_as is not None:
            credentials = {"user": run_as.uid, "group": run_as.gid, "extra_groups": list(run_as.groups)}
        try:
            done = subprocess.run(
                [self._found(program), *arguments[1:]],
                input=script.encode(errors="surrogateescape"),
                capture_output=True,
                timeout=PATIENCE_SECONDS,
                env=env or self._env,
                cwd="/",
                check=False,
                **credentials,
            )
        except subprocess.TimeoutExpired:
            raise SlurmUnavailable(f"{program} did not answer within {PATIENCE_SECONDS:g} s") from None
        except OSError as error:
            raise SlurmUnavailable(f"{program}: {error.strerror}") from error
        if done.returncode == 0:
            return _text(done.stdout)
        message = _message_of(program, _text(done.stderr or done.stdout))
        if is_passing(message):
            raise SlurmUnavailable(message)
        raise SlurmRefused(message)


def gres_options(job: Submission) -> list[str]:
    """`gpu:a100:2`, one for each type. Slurm is case-sensitive here."""
    return [f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in job.gpus.items()]


def is_passing(message: str) -> bool:
    """Whether Slurm's message describes a temporary problem."""
    return any(passing in message for passing in _PASSING)


def _text(output: bytes) -> str:
    """Users can give jobs any name, and Slurm cuts names between the bytes of a letter."""
    return output.decode(errors="replace")


def _message_of(program: str, stderr: str) -> str:
    """Slurm's own message, without the name of the program before each line."""
    lines: Sequence[str] = [line.removeprefix(f"{program}: ").removeprefix("error: ") for line in stderr.splitlines()]
    return plain("; ".join(line.strip() for line in lines if line.strip())) or f"{program} failed without a message"
