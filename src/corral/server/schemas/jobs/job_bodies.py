"""API schemas: request bodies for jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from corral.core.git_source import (
    MAX_ADDRESS_CHARS,
    MAX_DIRECTORY_CHARS,
    MAX_REF_CHARS,
    check_directory,
    check_ref,
    parse_address,
)
from corral.core.jobs.arrays import (
    MAX_ARRAY_INDEX,
    MAX_ARRAY_SIZE,
    MAX_PACKED_ITEMS,
    parse_array,
    parse_packed,
)
from corral.core.jobs.retries import read_retry_on
from corral.core.jobs.secret_uses import parse_secrets
from corral.core.model import DEFAULT_PRIORITY
from corral.core.quantities import MAX_COUNT, parse_cpus, parse_gpus
from corral.server.schemas.base import Body, Duration, Label, Note, Size, Text, described_bounds, environment


def _gpus(value: Any) -> Any:
    parse_gpus(value)
    return value


def _cpus(value: Any) -> Any:
    parse_cpus(value)
    return value


def _models(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"must be an absolute path, got {path!r}")
    return path


def _array(text: str, info: ValidationInfo) -> str:
    if info.data.get("pack"):
        parse_packed(text)
    elif "%" in text:
        raise ValueError(f"{text!r} limits the jobs at once: that takes packed items, or a queue with a limit of GPUs")
    else:
        parse_array(text)
    return text


def _retry_on(value: Any) -> Any:
    if value is None:
        return None
    values = value.split(",") if isinstance(value, str) else value
    if not isinstance(values, list | tuple):
        return value
    return read_retry_on([str(item) for item in values])


def _secrets(value: Any) -> Any:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(item, str) for item in values):
        return value
    parse_secrets(tuple(values))
    return tuple(values)


def _git(text: str) -> str:
    if text:
        parse_address(text)
    return text


_ARRAY = WithJsonSchema(
    {
        "type": "string",
        "maxLength": 10_000,
        "examples": ["0-99", "0-99:5", "1,3,7"],
        # Limits that no keyword of JSON Schema has: indexes, items with `pack`, and the largest index.
        "x-most-indexes": MAX_ARRAY_SIZE,
        "x-most-items": MAX_PACKED_ITEMS,
        "x-largest-index": MAX_ARRAY_INDEX,
    }
)
_NUMBER = WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_COUNT})
_TEXT_OR_LIST = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})

#: The kernel limits the arguments and the environment of a process; these limits stay well below.
ProcessText = Annotated[Text, Field(max_length=65_536)]


#: a directory on the nodes
Directory = Annotated[Text, Field(max_length=4096), AfterValidator(_absolute)]
#: the name of an image, or an address
ImageWord = Annotated[Text, Field(min_length=1, max_length=1024)]
Gpus = Annotated[float, BeforeValidator(_gpus), _NUMBER]
GpuCount = Annotated[int, Field(ge=1, le=10_000)]
Cpus = Annotated[float, BeforeValidator(_cpus), _NUMBER]
Models = Annotated[list[Label], BeforeValidator(_models), Field(max_length=32), _TEXT_OR_LIST]
Environment = Annotated[dict[str, ProcessText], Field(max_length=1024), AfterValidator(environment)]
RetryOn = Annotated[tuple[str, ...], BeforeValidator(_retry_on), _TEXT_OR_LIST]
#: a value for a preset's parameter; the preset decides which values are valid
ParameterValue = bool | int | float | ProcessText


#: from the warning of a stop to the end
Grace = Annotated[Duration, Field(le=3600), described_bounds(0, 3600)]
CheckpointInterval = Annotated[Duration, Field(ge=1, le=7 * 86_400), described_bounds(1, 7 * 86_400)]
#: `NAME`, `NAME=VARIABLE` or `NAME:file`
Secrets = Annotated[tuple[str, ...], BeforeValidator(_secrets), Field(max_length=64), _TEXT_OR_LIST]


#: names or ids of other jobs of the same owner
Others = Annotated[list[Annotated[Text, Field(min_length=1, max_length=253)]], Field(max_length=100)]


class MountBody(Body):
    """A mount, in parts."""

    source: Annotated[Text, Field(min_length=1, max_length=400)] = Field(
        description="A volume, owner/volume, dataset:NAME@VERSION, or local:SIZE."
    )
    path: Annotated[Text, Field(min_length=1, max_length=255)] = Field(description="Absolute path in the job.")
    mode: Literal["ro", "rw"] | None = Field(default=None, description="Null: the default for this type of storage.")
    prefetch: bool = Field(default=False, description="For a bucket: fetch all of it before the program starts.")


#: `data:/data:ro`, or the same in parts
Mounts = Annotated[list[Annotated[Text, Field(min_length=1, max_length=700)] | MountBody], Field(max_length=32)]


class JobSettings(Body):
    """Fields that jobs of every kind have, workbenches included."""

    description: Note = Field(default="", description="Purpose of the job, shown to every user who sees the job.")
    gpus: Gpus = Field(default=0, description="Per node: 0, a share below 1, or whole GPUs.")
    cpus: Cpus = 0
    memory: Size = 0
    model: Models | None = Field(default=None, description="Accepted GPU models.")
    labels: Annotated[dict[Label, Label], Field(max_length=64)] | None = None
    queue: Annotated[Text, Field(min_length=1, max_length=63)] | None = None
    flavor: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A flavor of the catalog."
    )
    package: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A package of the catalog, instead of gpus, cpus, memory and flavor."
    )
    priority: Annotated[int, Field(ge=0, le=100)] | None = None
    time: Annotated[Duration, Field(gt=0)] | None = None
    env: Environment | None = None
    secrets: Secrets = Field(
        default=(),
        description="Secrets of the user or the user's group: NAME or NAME=VARIABLE is an environment variable, "
        "NAME:file a file, whose path is in NAME_FILE.",
    )
    workdir: Directory | None = None
    image: ImageWord | None = Field(
        default=None, description="The name of an image, or an address; null: the node's own environment."
    )
    venv: Directory | None = Field(
        default=None, description="A virtual environment or conda prefix on the nodes; its programs are first in PATH."
    )
    hold: bool = False
    mounts: Mounts | None = Field(
        default=None, description="Storage of the job, such as data:/data:ro or local:10GiB:/scratch."
    )


class JobCreate(JobSettings):
    """A job to submit."""

    name: Label | None = None
    kind: Literal["workbench", "training", "distributed"] | None = Field(
        default=None, description="The kind follows from the other fields; any other value is refused."
    )
    command: Annotated[list[ProcessText], Field(min_length=1, max_length=1024)] = Field(
        default_factory=list, description="Required, unless a preset sets it."
    )
    preset: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A template that sets the command, and the size unless it is given here."
    )
    parameters: Annotated[dict[Label, ParameterValue], Field(max_length=64)] | None = Field(
        default=None, description="Values for the preset's parameters; the others have their defaults."
    )
    min_gpus: GpuCount | None = Field(
        default=None, description="Minimum of an elastic job on each node; it grows and shrinks. Instead of gpus."
    )
    max_gpus: GpuCount | None = Field(
        default=None, description="Maximum of an elastic job on each node; null: the installation's default."
    )
    restart_unsaved: bool | None = Field(
        default=None,
        description="Whether an elastic job that never saved a checkpoint may start over for a resize; null: no.",
    )
    app: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A web program that corral knows; `command` has its arguments."
    )
    port: Annotated[int, Field(ge=0, le=65_535)] | None = Field(
        default=None,
        description="The port of the loopback address at which the command serves a page; 0: a free port, which the "
        "command finds in CORRAL_APP_PORT.",
    )
    app_name: Annotated[Text, Field(max_length=63)] = Field(default="", description="The name of the page.")
    git: Annotated[Text, Field(max_length=MAX_ADDRESS_CHARS), AfterValidator(_git)] = Field(
        default="",
        description="The address of a Git repository: the program begins in a copy of one commit, which is fetched on "
        "the node.",
    )
    git_ref: Annotated[Text, Field(max_length=MAX_REF_CHARS), AfterValidator(check_ref)] = Field(
        default="", description="A branch, a tag or a whole commit; empty: the repository's own branch."
    )
    git_dir: Annotated[Text, Field(max_length=MAX_DIRECTORY_CHARS), AfterValidator(check_directory)] = Field(
        default="", description="The directory of the repository in which the program begins."
    )
    git_secret: Annotated[Text, Field(max_length=63)] = Field(
        default="", description="The secret with a deploy key (SSH), or a token or USER:TOKEN (HTTPS)."
    )
    nodes: Annotated[int, Field(ge=1, le=10_000)] = 1
    grace: Grace | None = None
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    retry_on: RetryOn | None = Field(
        default=None,
        description="Failures of the program that lead to another attempt: exit, oom, any, or exit codes; node and gpu "
        "always do. Null: the installation's default.",
    )
    idles: bool | None = Field(
        default=None,
        description="Whether the job may hold GPUs without using them for long; then zero use is no sign of a fault. "
        "The default for jobs with an app.",
    )
    restart_if_hung: bool | None = Field(
        default=None,
        description="Whether the job is restarted elsewhere, as a retry, if its program reports steps by "
        "corral.checkpoint and then none for long.",
    )
    preemptible: bool | None = Field(
        default=None,
        description="Whether the job may be preempted; null: yes, except for a workbench. A job that may not be "
        "preempted never gets GPUs that are guaranteed to other queues.",
    )
    checkpoint_interval: CheckpointInterval | None = Field(
        default=None,
        description="Interval at which the program should save checkpoints; null: the installation's default.",
    )
    commit_outputs: Annotated[Text, Field(max_length=1000)] = Field(
        default="",
        description="DATASET or DATASET=PATH: its outputs, or this part, become a version when the job completes.",
    )
    after: Others | None = Field(
        default=None,
        description="Jobs that must complete first: ids, names of the caller's jobs, or names of the caller's arrays.",
    )


class JobBatch(Body):
    jobs: Annotated[list[JobCreate], Field(min_length=1, max_length=1000)]


class JobArray(JobCreate):
    """One job for every index, named NAME-INDEX, with CORRAL_ARRAY_INDEX, _SIZE and _NAME in its environment."""

    pack: bool = Field(
        default=False,
        description="Run the items one after another on one allocation, or on as many as `%N` in `array` says.",
    )
    array: Annotated[Text, Field(max_length=10_000), AfterValidator(_array), _ARRAY] = Field(
        description="Indexes, such as 0-99, 0-99:5 or 1,3,7; with pack also 1-500%8: eight jobs."
    )


class ArrayStop(Body):
    array: Annotated[Text, Field(min_length=1, max_length=63)]
    user: Label | None = Field(
        default=None, description="Owner of the job if it is not the caller; only operators can set it."
    )


class JobClone(JobCreate):
    """Changes for a clone. Fields that are left out keep the values of the original. Variables and labels are added."""

    @field_validator("preset", "parameters")
    @classmethod
    def _refuse_rendered_preset(cls, value: Any) -> Any:
        if value is not None:
            raise ValueError("a clone keeps the command of its preset: submit the preset again instead")
        return value


class JobEdit(Body):
    """Changes to a job that does not run yet. Fields that are left out keep their values. The job's size can be changed
    until the job has started for the first time, the description at any time."""

    description: Note = ""
    queue: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="Null: chosen among the queues that the user may use."
    )
    priority: Annotated[int, Field(ge=0, le=100)] = DEFAULT_PRIORITY
    time: Annotated[Duration, Field(gt=0)] | None = Field(default=None, description="Null: the queue's limit.")
    preemptible: bool | None = Field(
        default=None,
        description="Can be changed until the job has started for the first time. Null: the default of its kind.",
    )
    restart_unsaved: bool = Field(
        default=False, description="Whether the job may start over for a resize before it has saved a checkpoint."
    )
    restart_if_hung: bool = Field(default=False, description="Whether the job is restarted elsewhere if it hangs.")
    after: Others | None = Field(default=None, description="Null: the job depends on no other job.")
    gpus: Gpus = Field(default=0, description="Per node: 0, a share below 1, or whole GPUs.")
    min_gpus: GpuCount | None = Field(default=None, description="Makes the job elastic, or changes its minimum.")
    max_gpus: GpuCount | None = Field(default=None, description="Makes the job elastic, or changes its maximum.")
    nodes: Annotated[int, Field(ge=1, le=10_000)] = 1
    cpus: Cpus = 0
    memory: Size = 0
    model: Models | None = Field(default=None, description="Accepted GPU models; null: any.")
    flavor: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A flavor of the catalog; null: no flavor."
    )
    package: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A package of the catalog, instead of gpus, cpus, memory and flavor."
    )


class JobResize(Body):
    """The new number of GPUs of a running elastic job."""

    gpus: GpuCount


class JobMigrate(Body):
    """The node to which a running job is moved."""

    to: Label | None = Field(default=None, description="Null: the best other node.")


class JobMove(Body):
    """Move one of the caller's jobs before or after another one of the caller's jobs."""

    before: Text | None = None
    after: Text | None = Field(default=None, validate_default=True)

    @field_validator("after")
    @classmethod
    def _one_of_them(cls, after: str | None, info: ValidationInfo) -> str | None:
        if (info.data.get("before") is None) == (after is None):
            raise ValueError("give either before or after")
        return after
