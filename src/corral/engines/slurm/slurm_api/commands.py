"""Slurm through its own programs: one call for all jobs or all nodes, never one for each."""

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

from corral.engines.slurm.cluster.partitions import Partition, partitions_in
from corral.engines.slurm.slurm_api.clean_text import plain
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

#: A controller that is busy answers late; one that is gone never does.
PATIENCE_SECONDS = 20.0
#: What a controller says that cannot be reached at the moment, or is overrun.
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
#: All nodes, hidden ones too, with the GPUs in use. Slurm 22.05 has no such JSON, and says so without a controller.
_NODES = ("scontrol", "--all", "--details", "show", "nodes", "--json")
_OLD_NODES = ("sinfo", "--json")
_NO_SUCH_OPTION = "unrecognized option"


class SlurmUnavailable(Exception):
    """The controller did not answer: the same again later."""


class SlurmRefused(Exception):
    """Slurm will not do this; its words are the message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """Who submits, when it is not the server's own account."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """One job for Slurm."""

    name: str
    comment: str
    #: what runs on the first node, with its #! line
    script: str
    nodes: tuple[str, ...]
    #: on each node, by the type as Slurm calls it; "" for any
    gpus: Mapping[str, int] = field(default_factory=dict)
    cpus: int = 1
    #: on each node; None leaves it to Slurm
    memory_mib: int | None = None
    #: UNLIMITED for as long as it likes; None leaves it to Slurm
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
    """What the engine needs of a cluster. Raises SlurmUnavailable and SlurmRefused."""

    def nodes(self) -> list[SlurmNode]: ...

    def partitions(self) -> list[Partition]: ...

    def live(self) -> list[SlurmJob]:
        """Those that wait or run, or are just about to be over. Mostly without names and comments."""

    def jobs(self) -> list[SlurmJob]:
        """All that the controller knows: live, and those that ended a short while ago. Dear where there are many."""

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        """What accounting knows of these jobs; empty where there is none."""

    def named(self, name: str, since: float) -> list[SlurmJob]:
        """What accounting knows of jobs of a name since a time; empty where there is none."""

    def reserved(self, name: str) -> list[str]:
        """The nodes of a reservation, none while it has not begun. Refused where there is none of that name."""

    def submitter(self) -> JobOwner:
        """Whose jobs those are that are submitted without `run_as`."""

    def submit(self, job: Submission) -> int: ...

    def signal(self, job_id: int, name: str, *, to_steps: bool) -> None:
        """To the script of a job, or to its steps. One that is over is left alone."""

    def cancel(self, *job_ids: int, only_pending: bool = False) -> None: ...

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None: ...


class SlurmCommands:
    """Implements `Slurm` with squeue, sinfo, sacct, sbatch, scancel and scontrol."""

    def __init__(self, *, conf: str | None = None, programs: str | None = None) -> None:
        self._programs = programs
        #: what finds Slurm and its programs
        self._way = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **({"SLURM_CONF": conf} if conf else {})}
        self._env = {**self._way, "LANG": "C.UTF-8", "TZ": "UTC"}
        #: how often the controller was asked, by program; a benchmark reads it
        self.calls: dict[str, int] = {}
        #: how nodes are asked for by the version that is installed
        self._nodes: tuple[str, ...] = _NODES

    def has(self, program: str) -> bool:
        return shutil.which(self._found(program)) is not None

    def nodes(self) -> list[SlurmNode]:
        """Where sinfo's JSON lists nodes, scontrol has none; where scontrol has it, sinfo's is about something else."""
        words = self._nodes  # others may find out at the same time
        try:
            return nodes_of(self._json(*words))
        except SlurmRefused as refusal:
            if words != _NODES or _NO_SUCH_OPTION not in str(refusal):
                raise
            self._nodes = _OLD_NODES
            return self.nodes()
        except Unreadable as problem:
            self._nodes = _NODES
            raise SlurmUnavailable(f"{' '.join(words)}: {problem}") from None

    def partitions(self) -> list[Partition]:
        return partitions_in(self._run("scontrol", "--all", "--oneliner", "show", "partition"))

    def live(self) -> list[SlurmJob]:
        nonce = new_nonce()
        try:
            return jobs_in(self._run("squeue", "--noheader", env={**self._env, VARIABLE: table_format(nonce)}), nonce)
        except Unreadable as problem:
            log.info("squeue's table is left for its JSON: %s", problem)
            return [job for job in self.jobs() if not job.is_over]

    def jobs(self) -> list[SlurmJob]:
        return self._jobs("squeue", "--json", "--states=all")

    def ended(self, job_ids: Collection[int]) -> list[SlurmJob]:
        # Of everybody, but only these: the books of a cluster are large. With their numbers, since ever.
        return self._booked(f"--jobs={','.join(map(str, job_ids))}") if job_ids else []

    def named(self, name: str, since: float) -> list[SlurmJob]:
        # Times are in UTC, as the environment says.
        start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(1.0, since)))
        return self._booked(f"--name={name}", f"--starttime={start}")

    def reserved(self, name: str) -> list[str]:
        told = self._run("scontrol", "--oneliner", "show", "reservation", name)
        # The first of a key counts: what people write about a reservation comes behind.
        words = {key: value for key, _, value in (word.partition("=") for word in reversed(told.split()))}
        return expand(words.get("Nodes", "")) if words.get("State") == "ACTIVE" else []

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
        # The job inherits what sbatch has: no language, no time zone and no PATH of the server's. Its script finds
        # Slurm's own programs where they are here, if not on the PATH of jobs.
        paths = (job.env.get("PATH", ""), os.path.dirname(self._found("sbatch")))
        env = {**self._way, **job.env, "PATH": ":".join(filter(None, paths))}
        answer = self._run("sbatch", *options, *job.extra, run_as=job.run_as, env=env, script=job.script)
        try:
            return int(answer.strip().splitlines()[-1].split(";")[0])
        except (ValueError, IndexError):
            raise SlurmUnavailable(f"sbatch gave no job id: {answer.strip()!r}") from None

    def signal(self, job_id: int, name: str, *, to_steps: bool) -> None:
        self._unless_over("scancel", f"--signal={name}", *([] if to_steps else ["--batch"]), str(job_id))

    def cancel(self, *job_ids: int, only_pending: bool = False) -> None:
        self._unless_over("scancel", *(["--state=PENDING"] if only_pending else []), *map(str, job_ids))

    def set_node(self, name: str, *, is_withheld: bool, reason: str) -> None:
        # Not RESUME: that would also call a node up that is down.
        update = ["State=DRAIN", f"Reason={reason}"] if is_withheld else ["State=UNDRAIN"]
        self._run("scontrol", "update", f"NodeName={name}", *update)

    def _unless_over(self, *words: str) -> None:
        try:
            self._run(*words)
        except SlurmRefused as refusal:
            over = ("Invalid job id", "already completing or completed", "Job/step already", "not running")
            if not any(text in str(refusal) for text in over):
                raise

    def _booked(self, *which: str) -> list[SlurmJob]:
        return self._jobs("sacct", "--json", "--allusers", "--allocations", *which)

    def _found(self, program: str) -> str:
        """By its whole path, as the environment of a job has another PATH."""
        if self._programs:
            return os.path.join(self._programs, program)
        return shutil.which(program, path=self._way["PATH"]) or os.path.join("/usr/bin", program)

    def _jobs(self, *words: str) -> list[SlurmJob]:
        try:
            return jobs_of(self._json(*words))
        except Unreadable as problem:
            raise SlurmUnavailable(f"{words[0]}: {problem}") from None

    def _json(self, *words: str) -> Mapping[str, Any]:
        text = self._run(*words)
        try:
            document = json.loads(text)
        except ValueError:
            raise SlurmUnavailable(f"{words[0]} gave no JSON: {text[:200]!r}") from None
        if not isinstance(document, Mapping):
            raise SlurmUnavailable(f"{words[0]} gave another JSON than expected: {text[:200]!r}")
        if problems := errors_of(document):
            raise SlurmUnavailable(f"{words[0]}: {problems}")
        return document

    def _run(
        self, *words: str, run_as: Account | None = None, env: Mapping[str, str] | None = None, script: str = ""
    ) -> str:
        program = words[0]
        self.calls[program] = self.calls.get(program, 0) + 1
        who: dict[str, Any] = {}
        if run_as is not None:
            who = {"user": run_as.uid, "group": run_as.gid, "extra_groups": list(run_as.groups)}
        try:
            done = subprocess.run(
                [self._found(program), *words[1:]],
                input=script.encode(errors="surrogateescape"),
                capture_output=True,
                timeout=PATIENCE_SECONDS,
                env=env or self._env,
                cwd="/",
                check=False,
                **who,
            )
        except subprocess.TimeoutExpired:
            raise SlurmUnavailable(f"{program} did not answer within {PATIENCE_SECONDS:g} s") from None
        except OSError as error:
            raise SlurmUnavailable(f"{program}: {error.strerror}") from error
        if done.returncode == 0:
            return _text(done.stdout)
        said = _message_of(program, _text(done.stderr or done.stdout))
        if is_passing(said):
            raise SlurmUnavailable(said)
        raise SlurmRefused(said)


def gres_options(job: Submission) -> list[str]:
    """`gpu:a100:2`, one for each type. Slurm minds capitals."""
    return [f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in job.gpus.items()]


def is_passing(said: str) -> bool:
    """Whether Slurm's words tell of something that may be over soon."""
    return any(passing in said for passing in _PASSING)


def _text(output: bytes) -> str:
    """Anybody names jobs as they like, and Slurm cuts names between the bytes of a letter."""
    return output.decode(errors="replace")


def _message_of(program: str, stderr: str) -> str:
    """Slurm's own words, without the name of the program before each line."""
    lines: Sequence[str] = [line.removeprefix(f"{program}: ").removeprefix("error: ") for line in stderr.splitlines()]
    return plain("; ".join(line.strip() for line in lines if line.strip())) or f"{program} failed without a word"
