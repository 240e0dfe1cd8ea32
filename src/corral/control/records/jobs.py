"""Records of jobs: specs, attempts and usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from corral.core.model import WHOLE, Allocation, EndReason, Job, JobKind, JobState
from corral.core.monitoring.attempt_usage import NOTHING_MEASURED, Measured

#: Rows of earlier versions have a task's name under this label, and the task's mode under the other, in place of the
#: fields `task` and `task_mode`. So no user may give a job the first of these labels.
TASK_LABEL, TASK_MODE_LABEL = "task", "mode"
#: A label of a spec that marks a job that retention keeps, with the user who wanted it.
KEPT_LABEL = "corral.kept"


class MountKind(StrEnum):
    VOLUME = "volume"
    #: one version of a dataset, always to read
    DATASET = "dataset"
    #: the node's own disk, which ends with the attempt
    LOCAL = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class MountSpec:
    """Something that a job sees as a directory."""

    kind: MountKind
    #: as its owner said it: a volume, owner/volume, or a dataset with its version; "" for the node's own disk
    source: str
    #: where the job sees it: an absolute path
    path: str
    read_only: bool = False
    #: what `source` was at that moment: names can be given to others later
    volume_id: str | None = None
    dataset_id: str | None = None
    #: the whole id of the version
    version: str | None = None
    #: the requested size on the node's own disk
    size_bytes: int = 0
    #: whether a bucket's files are fetched before the job starts
    prefetch: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSpec:
    """The program of a job and its description."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    #: labels of the request as the user gave them, kept for display and cloning
    labels: Mapping[str, str] = field(default_factory=dict)
    #: the name of an image or its address; None means the environment of the node
    image: str | None = None
    #: a virtual environment or conda prefix on the node whose programs come first
    venv: str | None = None
    #: which services a workbench offers
    jupyter: bool = False
    ssh: bool = False
    #: a workbench that was not used for so long is stopped; None means never
    idle_stop_seconds: float | None = None
    #: how often its program shall save; None means as often as the installation says
    checkpoint_interval_seconds: float | None = None
    #: the job's place in an array, the array's name, and the number of jobs that it was submitted with
    array_index: int | None = None
    array_name: str = ""
    array_size: int = 0
    #: the items of the array that this job runs one after another; empty unless the array is packed
    items: tuple[int, ...] = ()
    #: the preset that it was made from, and what was given for it
    preset: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: storage that it sees, by its paths
    mounts: tuple[MountSpec, ...] = ()
    #: the task that the job holds GPUs for; None for all other jobs
    task: str | None = None
    #: for a task: "manual" if the user chose the number of GPUs, "auto" if corral did
    task_mode: str = ""
    #: what the job is for, in its owner's words
    description: str = ""
    #: secrets that the job gets, as `core.jobs.secret_uses` reads them; never their values
    secrets: tuple[str, ...] = ()
    #: a web program: one that corral knows, or the port of the job's own, with its name
    app: str | None = None
    app_port: int | None = None
    app_name: str = ""
    #: DATASET or DATASET=PATH: outputs that become a version of the dataset when the job completes
    commit_outputs: str = ""

    #: a Git repository in which the program begins: address, branch or tag as it was given, directory, and the name of
    #: the secret with a key or token; the commit is looked up at the submission
    git: str = ""
    git_ref: str = ""
    git_dir: str = ""
    git_secret: str = ""
    git_commit: str = ""

    @property
    def length(self) -> int:
        """Characters of the texts that a user chooses freely: command, environment and parameters."""
        pairs = (*self.env.items(), *self.parameters.items())
        return sum(map(len, self.command)) + sum(len(name) + len(value) for name, value in pairs)

    @property
    def has_app(self) -> bool:
        return self.app is not None or self.app_port is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRecord:
    job: Job
    spec: JobSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """One run of a job on one allocation, kept after its end."""

    id: str
    job_id: str
    number: int
    allocation: Allocation
    planned_at: float
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadableRow:
    """A row of the store that is damaged. It is left out; an operator repairs or deletes it."""

    table: str
    key: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageRecord:
    """The resources that one attempt held and used. The record outlives its job: reports are made from it."""

    attempt_id: str
    job_id: str
    job_name: str
    user: str
    #: group of its user when it was planned
    group: str | None
    kind: JobKind
    queue: str
    pool: str
    #: "" without GPUs
    model: str
    nodes: int
    gpu_milli: int
    gpu_ids: tuple[str, ...] = ()
    #: since when the job waited for this attempt
    queued_at: float
    planned_at: float
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    #: the job's state after this attempt; None while it lasts
    outcome: JobState | None = None
    measured: Measured = NOTHING_MEASURED

    @property
    def wait_seconds(self) -> float:
        return max(0.0, self.planned_at - self.queued_at)

    def gpu_seconds(self, since: float, until: float) -> float:
        """GPU time that it held within a span. One that ended before it began has used none of what was kept for it:
        on a cluster of others, such as Slurm, these had the GPUs."""
        if self.ended_at is not None and self.started_at is None:
            return 0.0
        begin, end = max(self.planned_at, since), min(until if self.ended_at is None else self.ended_at, until)
        return max(0.0, end - begin) * self.gpu_milli / WHOLE


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageUpdate:
    """The part of an attempt's usage that changes after the attempt was planned."""

    attempt_id: str
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    outcome: JobState | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleWarning:
    """A warning to the owner of a job that leaves its GPUs idle."""

    job_id: str
    attempt: int
    warned_at: float
    #: when something is done about it
    deadline: float
    #: the owner has asked for more time, which can be done once
    extended_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """The filter of a list of jobs; an empty field selects every job."""

    states: tuple[JobState, ...] = ()
    kinds: tuple[JobKind, ...] = ()
    #: only jobs of this user, whichever other user is asked for
    user: str | None = None
    #: jobs of any of these users
    users: tuple[str, ...] = ()
    queue: str | None = None
    name_contains: str | None = None
    #: as it is written, capitals and all
    name_prefix: str | None = None
    #: the first digits of the number in the id
    id_prefix: str | None = None
    #: in the id, the name, the user's name or the description
    text: str | None = None
    #: when they were created: from the first, before the second
    since: float | None = None
    until: float | None = None
    #: members of arrays of this name, of all users
    array: str | None = None
    #: that ran there last, or wait and may run there
    cluster: str | None = None
    #: the GPU models of that cluster
    cluster_models: tuple[str, ...] = ()


EVERY_JOB = JobFilter()
