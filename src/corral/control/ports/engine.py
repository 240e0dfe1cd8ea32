"""Port: an engine, which runs attempts on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from corral.control.ports.store.holder import Leadership
from corral.core.model import WHOLE, EndReason, Node


class EngineUnavailable(Exception):
    """The engine cannot be reached at this moment: try the same call again later."""


class LaunchRefused(Exception):
    """The engine will never start this attempt; the message gives the reason to the job's owner."""


class AttemptTaken(LaunchRefused):
    """An attempt of this id has run here already, and is over: the store that gives it again is older than that. The
    next attempt of the job has another id."""

    def __init__(self, attempt_id: str) -> None:
        super().__init__(
            f"attempt {attempt_id} is over here already: its id was used a second time, which happens after an older "
            "store is restored. The next attempt has another id."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """One process of an attempt: its rank, its node, and its GPUs by their index on that node."""

    rank: int
    node: str
    gpu_ids: tuple[str, ...] = ()
    gpu_indexes: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    #: how much of each GPU, in thousandths
    gpu_milli: int = WHOLE
    #: the memory of each whole GPU; 0 if it is not known
    gpu_memory_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryLogin:
    """The login that pulls an image. The secret is not encrypted here: it must never be logged, nor written where
    others can read.
    """

    registry: str
    username: str
    secret: str = field(repr=False)
    #: it is the login of the job's own user, not one that is used for others
    is_own: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """A directory of the node that a job sees."""

    source: str
    target: str
    read_only: bool = False


class StorageKind(StrEnum):
    """The source of the data that an attempt mounts."""

    #: a volume that its driver has made
    VOLUME = "volume"
    #: files of a bucket, fetched as they are read
    OBJECT = "object"
    #: a version of a dataset, checked against its ids
    DATASET = "dataset"
    #: the node's own disk, empty at first and gone with the attempt
    LOCAL = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageOrder:
    """A mount of an attempt. The engine finds or creates the directory on the node."""

    kind: StorageKind
    #: what people call it: names its variable and its link
    name: str
    #: where the job sees it
    path: str
    read_only: bool
    #: the volume, or the dataset
    id: str = ""
    #: the volume's owner; "" for other mounts
    owner: str = ""
    #: version of a dataset
    version: str = ""
    #: size on the node's own disk; 0 means no limit
    size_bytes: int = 0
    #: fetch all of it before the program begins
    prefetch: bool = False
    #: how a bucket or a dataset's storage is reached. Holds secrets: never logged, nor written where others can read.
    access: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class GitOrder:
    """The commit of a Git repository in which a program begins."""

    url: str
    #: the branch or tag by which the commit was found; "" for the repository's own branch
    ref: str
    commit: str
    #: in the repository; "" is its top
    directory: str = ""
    #: the name of the secret with a key or token; "" without one
    secret: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchOrder:
    """Everything an engine needs to run one attempt."""

    attempt_id: str
    job_id: str
    user: str
    command: tuple[str, ...]
    instances: tuple[Instance, ...]
    #: the instances get the variables to find each other; several instances always do
    is_distributed: bool = False
    #: for every instance; an instance's own env comes on top
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    time_limit_seconds: float | None = None
    grace_seconds: float = 30.0
    #: per instance; 0 means no limit
    memory_bytes: int = 0
    cpu_milli: int = 0
    #: the address of the image that it runs in; None means the node's own environment
    image: str | None = None
    login: RegistryLogin | None = None
    #: a virtual environment or conda prefix whose programs come first
    venv: str | None = None
    mounts: tuple[Mount, ...] = ()
    storage: tuple[StorageOrder, ...] = ()
    #: the command begins in this commit; a launch step makes it a part of the command
    git: GitOrder | None = None
    #: whether the command serves a page that corral opens for users
    has_app: bool = False
    #: secrets that the job names, and, once they are looked up, the variables that hold their values: never logged, nor
    #: written where others can read
    secrets: tuple[str, ...] = ()
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: the account of the operating system that the processes belong to; None means the server's own
    os_user: str | None = None
    #: the group of its user
    group: str | None = None


class AttemptPhase(StrEnum):
    #: taken, and something takes long before its program begins: an image is pulled; only ever observed
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptStatus:
    """An attempt as its engine sees it; also the event that reports a change of it."""

    attempt_id: str
    phase: AttemptPhase
    #: when the phase began
    at: float
    reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""
    #: the nodes or GPUs that failed under it, of an end that is their fault; none named: it may be any of its own
    failed: tuple[str, ...] = ()
    #: for an end: the time when its programs had begun; None if the engine does not know it
    began_at: float | None = field(default=None, compare=False)


class Withholding(StrEnum):
    """Whether the engine still withholds a node as corral has decided."""

    KEPT = "kept"
    #: an administrator of the engine has decided otherwise
    OVERRULED = "overruled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    nodes: tuple[Node, ...]
    #: every attempt that was launched and not yet forgotten, starting, running or ended
    attempts: tuple[AttemptStatus, ...]
    #: by node, of those that corral has withheld at the engine; None if only corral starts programs on its nodes
    withheld: Mapping[str, Withholding] | None = None
    #: attempts that were over by what they had written themselves, and until when their GPUs were held all the same
    overran: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogChunk:
    data: bytes
    #: where the next read continues
    next_offset: int
    #: nothing more will ever come: the attempt is over and everything was read
    at_end: bool


class LogSource(Protocol):
    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        """See `Engine`."""


class AttemptLogs(LogSource, Protocol):
    """The output of one cluster's attempts."""

    def has(self, attempt_id: str) -> bool:
        """See `Engine`."""


@runtime_checkable
class Fenced(Protocol):
    """An engine that several servers might reach, one after the other: it obeys only the one with the latest term."""

    def term_seen(self) -> int:
        """The latest term that was ever given here; 0 if none was."""

    def lead(self, leadership: Leadership) -> None:
        """Sets the term of launches and stops. Those of an older term raise EngineUnavailable, and have no effect if
        they are already under way.
        """


@runtime_checkable
class LaunchesAtOnce(Protocol):
    """An engine whose launches mostly wait for another system: several are sent at the same time."""

    #: how many
    launches_at_once: int


@runtime_checkable
class NodesElsewhere(Protocol):
    """An engine whose nodes are other machines than the server's."""

    def address_of(self, node: str) -> str:
        """The address at which the server reaches a node. Raises EngineUnavailable while it is unknown."""


@runtime_checkable
class AttemptsElsewhere(Protocol):
    """An engine whose attempts have networks of their own, such as pods."""

    def listen_address(self) -> str:
        """The address that a program of an attempt listens at, so that `reach` leads to it."""

    def reach(self, attempt_id: str, port: int) -> tuple[str, int] | int:
        """The address at which the server reaches a port of the attempt's first instance, or the descriptor of a
        connection to it, which is the caller's. Raises EngineUnavailable while there is none."""


@runtime_checkable
class OnThisDisk(Protocol):
    """An engine whose attempts write to disks that the server can measure: of its own machine, or shared with it."""

    def directories(self, attempt_id: str) -> Sequence[str]:
        """The directories, besides the job's own, that the attempt writes; their contents belong to the job. Quick."""

    def temporary_directories(self, attempt_id: str) -> Sequence[str]:
        """The directories of files that end with the attempt, without those of requested storage: its temporary
        directory, and the changed files of its containers. May take a moment.
        """

    def kept_directory(self, attempt_id: str) -> str:
        """The directory with everything that is kept of the attempt, including its log."""


class EnginePartKind(StrEnum):
    """The kind of a process of an engine."""

    #: starts the supervisors of attempts
    SPAWNER = "spawner"
    #: belongs to the cluster's own system, such as slurmctld or slurmd
    DAEMON = "daemon"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnginePart:
    """A process that an engine depends on."""

    #: unique among the parts of one engine
    name: str
    kind: EnginePartKind
    #: the node that it serves; "" if it serves the whole cluster
    node: str = ""
    healthy: bool
    #: what is wrong; or, of a healthy one, what there is to know
    detail: str = ""
    #: when it was started; None if the engine cannot find out
    started_at: float | None = None
    #: how often it was started again, as far as the engine has seen; None if the engine does not count it
    restarts: int | None = None
    #: why it ended the last time
    last_error: str = ""


@runtime_checkable
class FollowsNodes(Protocol):
    """An engine that knows at once when a node changes: it need not be observed more often for that."""

    def follow_nodes(self, changed: Callable[[], None]) -> None:
        """Call `changed`, from any thread, when what `observe` reports about nodes has changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeExporter:
    """A program on a node that serves readings of its GPUs."""

    node: str
    #: host and port
    address: str


@runtime_checkable
class HasExporters(Protocol):
    """An engine that finds the exporters of its nodes by itself, and whose nodes choose the devices of jobs."""

    def exporters(self) -> Sequence[NodeExporter]:
        """The exporters that run now."""

    def held_devices(self) -> Mapping[str, str]:
        """The device of each GPU that an attempt holds, or that is always the same one; "" if it is unknown."""


@runtime_checkable
class HasParts(Protocol):
    """An engine that depends on processes of its own, or on daemons of a cluster."""

    def parts(self) -> Sequence[EnginePart]:
        """The last known state of the parts. Quick: the cluster is not queried."""

    def part_log(self, name: str, limit_bytes: int) -> str:
        """The end of the part's own log; "" if there is none on this machine."""


class Engine(Protocol):
    """Runs attempts on a cluster. Every method is idempotent by attempt id and returns within a second."""

    def observe(self) -> Observation:
        """Nodes, GPUs and attempts as they are now. Raises EngineUnavailable."""

    def launch(self, order: LaunchOrder) -> None:
        """Start the attempt, once: a second call for the same attempt id does nothing, also after a crash
        of either side. An attempt that is over and forgotten is refused. Raises EngineUnavailable (again later)
        or LaunchRefused (never)."""

    def stop(self, attempt_id: str, grace_seconds: float) -> None:
        """Sends SIGTERM to every process, and SIGKILL after the grace time. Returns at once; the end comes as an event.
        An attempt that is unknown or over is ignored. Raises EngineUnavailable.
        """

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        """Output of one instance from a byte offset on (negative: that many bytes before the end). What was
        rotated away is skipped. An unknown attempt has an empty log that is at its end."""

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        """Drops the ends of these attempts, which the store has recorded. Logs are kept unless `delete_logs` is set."""

    def has(self, attempt_id: str) -> bool:
        """Whether anything of it is here: it runs, or it has run and its logs are kept."""

    def withhold(self, node: str, reason: str) -> None:
        """Keeps the cluster from starting new programs on the node, for corral or others, and stores the reason. An
        engine whose nodes only corral uses does nothing. Raises EngineUnavailable.
        """

    def release(self, node: str, *, force: bool) -> None:
        """Allows programs on the node again, if corral has withheld it, or with `force` even if an administrator has.
        Raises EngineUnavailable.
        """

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        """Call `sink`, from any thread, soon after an attempt is up and after it ended. A lost event is
        found again by `observe`."""

    def close(self) -> None:
        """Closes the engine. Attempts continue to run."""
