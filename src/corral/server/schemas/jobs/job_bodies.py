"""What may be asked for of jobs, on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from corral.core.jobs.arrays import parse_array
from corral.core.model import DEFAULT_PRIORITY
from corral.core.quantities import parse_cpus, parse_gpus
from corral.server.schemas.base import Body, Duration, Label, Size, Text, environment


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


def _array(text: str) -> str:
    parse_array(text)
    return text


_ARRAY = WithJsonSchema({"type": "string", "maxLength": 10_000, "examples": ["0-99", "0-99:5", "1,3,7"]})
_NUMBER = WithJsonSchema({"type": "number", "minimum": 0})
_TEXT_OR_LIST = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})

#: What one process may be given is limited by the kernel; these stay well below it.
Word = Annotated[Text, Field(max_length=65_536)]


#: a directory on the nodes
Directory = Annotated[Text, Field(max_length=4096), AfterValidator(_absolute)]
#: the name of an image, or an address
ImageWord = Annotated[Text, Field(min_length=1, max_length=512)]
Gpus = Annotated[float, BeforeValidator(_gpus), _NUMBER]
GpuCount = Annotated[int, Field(ge=1, le=10_000)]
Cpus = Annotated[float, BeforeValidator(_cpus), _NUMBER]
Models = Annotated[list[Label], BeforeValidator(_models), Field(max_length=32), _TEXT_OR_LIST]
Environment = Annotated[dict[str, Word], Field(max_length=1024), AfterValidator(environment)]
#: a value for a preset's parameter; the preset says which are right
ParameterValue = bool | int | float | Word


#: other jobs, as their owner calls them
Others = Annotated[list[Annotated[Text, Field(min_length=1, max_length=253)]], Field(max_length=100)]


class MountBody(Body):
    """Something to be mounted, in parts."""

    source: Annotated[Text, Field(min_length=1, max_length=400)] = Field(
        description="A volume, owner/volume, dataset:NAME@VERSION, or local:SIZE."
    )
    path: Annotated[Text, Field(min_length=1, max_length=255)] = Field(description="Where the job sees it; absolute.")
    mode: Literal["ro", "rw"] | None = Field(default=None, description="Null: as such things usually are.")
    prefetch: bool = Field(default=False, description="Of a bucket: fetch all of it before the program begins.")


#: `data:/data:ro`, or the same in parts
Mounts = Annotated[list[Annotated[Text, Field(min_length=1, max_length=700)] | MountBody], Field(max_length=32)]


class JobCreate(Body):
    """A job as a user asks for it."""

    name: Label | None = None
    kind: Literal["workbench", "training", "distributed"] | None = Field(
        default=None, description="Follows from what the job is; another one than that is refused."
    )
    command: Annotated[list[Word], Field(min_length=1, max_length=1024)] = Field(
        default_factory=list, description="Needed, unless a preset brings it."
    )
    preset: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A template that brings the command, and a size for what is not given here."
    )
    parameters: Annotated[dict[Label, ParameterValue], Field(max_length=64)] | None = Field(
        default=None, description="What fills the preset's places; its defaults hold for the rest."
    )
    gpus: Gpus = Field(default=0, description="Per node: 0, a share below 1, or whole GPUs.")
    min_gpus: GpuCount | None = Field(
        default=None, description="Of an elastic job, which grows and shrinks; instead of gpus."
    )
    max_gpus: GpuCount | None = Field(default=None, description="Of an elastic job; null: as the installation says.")
    nodes: Annotated[int, Field(ge=1, le=10_000)] = 1
    cpus: Cpus = 0
    memory: Size = 0
    model: Models | None = Field(default=None, description="GPU models that will do.")
    labels: Annotated[dict[Label, Label], Field(max_length=64)] | None = None
    queue: Annotated[Text, Field(min_length=1, max_length=63)] | None = None
    flavor: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A kind of hardware out of the catalog."
    )
    package: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A size out of the catalog, instead of gpus, cpus, memory and flavor."
    )
    priority: Annotated[int, Field(ge=0, le=100)] | None = None
    time: Annotated[Duration, Field(gt=0)] | None = None
    grace: Annotated[Duration, Field(le=3600)] | None = None
    env: Environment | None = None
    workdir: Directory | None = None
    image: ImageWord | None = Field(
        default=None, description="The name of an image, or an address; null: the node's own environment."
    )
    venv: Directory | None = Field(
        default=None, description="A virtual environment or conda prefix on the nodes, whose programs come first."
    )
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    preemptible: bool | None = Field(
        default=None,
        description="Whether it may be sent back to its queue for others; null: yes, but for a workbench. One that may "
        "not never takes what other queues are owed.",
    )
    checkpoint_interval: Annotated[Duration, Field(ge=1, le=7 * 86_400)] | None = Field(
        default=None, description="How often its program shall save its work; null: as the installation says."
    )
    hold: bool = False
    mounts: Mounts | None = Field(
        default=None, description="Storage that it sees, such as data:/data:ro or local:10GiB:/scratch."
    )
    after: Others | None = Field(
        default=None,
        description="Jobs that must have completed before: ids, names of one's own, or names of one's own arrays.",
    )


class JobBatch(Body):
    jobs: Annotated[list[JobCreate], Field(min_length=1, max_length=1000)]


class JobArray(JobCreate):
    """One job for every index, called NAME-INDEX, with CORRAL_ARRAY_INDEX, _SIZE and _NAME in its environment."""

    array: Annotated[Text, Field(max_length=10_000), AfterValidator(_array), _ARRAY] = Field(
        description="Indexes, such as 0-99, 0-99:5 or 1,3,7."
    )


class ArrayStop(Body):
    array: Annotated[Text, Field(min_length=1, max_length=63)]
    user: Label | None = Field(default=None, description="Whose it is, if not the caller's; for operators.")


class JobClone(JobCreate):
    """What is to be different about a clone; what is left out is as it was. Variables and labels are added."""

    @field_validator("preset", "parameters")
    @classmethod
    def _not_rendered_again(cls, value: Any) -> Any:
        if value is not None:
            raise ValueError("a clone keeps the command that its preset gave: submit the preset again instead")
        return value


class JobEdit(Body):
    """What is to be different about a job that does not run yet; what is left out stays as it is. Its size can be
    changed until it has started for the first time."""

    queue: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="Null: the right one of those that its user may use."
    )
    priority: Annotated[int, Field(ge=0, le=100)] = DEFAULT_PRIORITY
    time: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None, description="Null: as long as the queue allows."
    )
    preemptible: bool | None = Field(
        default=None, description="Until it has started for the first time. Null: as jobs of its kind usually are."
    )
    after: Others | None = Field(default=None, description="Null: it waits for no other job.")
    gpus: Gpus = Field(default=0, description="Per node: 0, a share below 1, or whole GPUs.")
    min_gpus: GpuCount | None = Field(default=None, description="Makes it elastic, or changes how far it shrinks.")
    max_gpus: GpuCount | None = Field(default=None, description="Makes it elastic, or changes how far it grows.")
    nodes: Annotated[int, Field(ge=1, le=10_000)] = 1
    cpus: Cpus = 0
    memory: Size = 0
    model: Models | None = Field(default=None, description="GPU models that will do; null: any.")
    flavor: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A kind of hardware out of the catalog; null: none in particular."
    )
    package: Annotated[Text, Field(min_length=1, max_length=63)] | None = Field(
        default=None, description="A size out of the catalog, instead of gpus, cpus, memory and flavor."
    )


class JobResize(Body):
    """How many GPUs a running elastic job shall go on with."""

    gpus: GpuCount


class JobMove(Body):
    """Put a job of one's own before or after another one of one's own."""

    before: Text | None = None
    after: Text | None = Field(default=None, validate_default=True)

    @field_validator("after")
    @classmethod
    def _one_of_them(cls, after: str | None, info: ValidationInfo) -> str | None:
        if (info.data.get("before") is None) == (after is None):
            raise ValueError("give either before or after")
        return after
