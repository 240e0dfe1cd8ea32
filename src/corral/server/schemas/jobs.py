"""Jobs on the wire: what may be asked for, and how a job is shown."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from corral.control.catalog import FLAVOR_WORD, PACKAGE_WORD
from corral.control.records import AttemptRecord, IdleWarning, JobRecord, JobSpec
from corral.control.work import Caller
from corral.core.arrays import parse_array
from corral.core.model import DEFAULT_PRIORITY, WHOLE, Allocation, Job, JobKind, JobState, Prediction
from corral.core.quantities import parse_cpus, parse_gpus
from corral.server.estimating import Current
from corral.server.schemas.base import Body, Duration, Label, Number, Size, Text, View, number, rfc3339, rfc3339_or_none
from corral.server.schemas.estimates import EstimatedStartView, estimated_start_view
from corral.server.schemas.measurements import UsageView

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _gpus(value: Any) -> Any:
    parse_gpus(value)
    return value


def _cpus(value: Any) -> Any:
    parse_cpus(value)
    return value


def _environment(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if _ENV_NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a name of an environment variable: letters, digits and _")
    return env


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
Environment = Annotated[dict[str, Word], Field(max_length=1024), AfterValidator(_environment)]
#: a value for a preset's parameter; the preset says which are right
ParameterValue = bool | int | float | Word


#: other jobs, as their owner calls them
Others = Annotated[list[Annotated[Text, Field(min_length=1, max_length=253)]], Field(max_length=100)]


class JobCreate(Body):
    """A job as a user asks for it."""

    name: Label | None = None
    kind: Literal["workbench", "training", "distributed"] | None = None
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


class GrantView(View):
    node: str
    gpus: list[str]
    gpu_share: Number
    cpus: Number
    memory_bytes: int


class AllocationView(View):
    model: str
    grants: list[GrantView]


class ElasticView(View):
    min_gpus: int
    max_gpus: int
    utilization: Number | None = Field(description="Measured use of its GPUs lately; null: not known yet.")
    resized_at: str | None
    next_gpus: list[str] | None = Field(description="While it is resized: what its next attempt gets.")


class PredictionView(View):
    """How long it was expected to run, from its next start on, when it was last queued."""

    p50_seconds: Number
    p90_seconds: Number
    samples: int = Field(description="How many completed runs that is known from.")
    like: str = Field(description="What those runs have in common with it.")


class IdleWarningView(View):
    warned_at: str
    #: when it is stopped unless it uses its GPUs
    deadline: str
    #: when it was given more time, which can be done once
    extended_at: str | None


class ArrayView(View):
    """The array that a job belongs to."""

    name: str
    index: int
    size: int


class JobCountsView(View):
    total: int
    by_state: dict[str, int] = Field(description="Every state, also those that no job is in.")


class JobView(View):
    id: str
    name: str
    user: str
    kind: JobKind
    state: JobState
    queue: str
    priority: int
    nodes: int
    gpus: Number
    cpus: Number
    memory_bytes: int
    models: list[str]
    labels: dict[str, str]
    flavor: str | None = Field(description="As it was picked; later changes of it don't matter.")
    package: str | None
    preset: str | None = Field(default=None, description="The template that it was made from.")
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What filled the template; shown as the command is."
    )
    command: list[str] = Field(description="With env and workdir, shown to its owner and to operators only.")
    env: dict[str, str]
    workdir: str | None
    image: str | None = Field(default=None, description="As it was given: the name of an image, or an address.")
    venv: str | None = None
    time_limit_seconds: Number | None
    grace_seconds: Number
    max_retries: int
    checkpoint_interval_seconds: Number | None = Field(
        description="How often its program shall save; null: as the installation says."
    )
    checkpointed_at: str | None = Field(description="When its program last saved its work.")
    predicted: PredictionView | None = Field(description="null: nothing is known of jobs like it.")
    created_at: str
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    pinned_at: str | None
    attempt: int
    attempt_id: str | None
    allocation: AllocationView | None
    elastic: ElasticView | None = Field(
        default=None, description="Of a job that grows and shrinks; gpus is what it has now, or its minimum."
    )
    end_reason: str | None
    exit_code: int | None
    message: str
    retries: int
    not_before: str | None
    stopping_for: str | None
    preemptible: bool
    preempted_for: str | None = Field(description="The job that it makes, or made, room for, until it starts again.")
    preemptions: int = Field(description="How often it was preempted since its owner started it.")
    after: list[str] = Field(description="Jobs that must complete before it may start.")
    array: ArrayView | None = None
    usage: UsageView | None = Field(
        default=None, description="What it has held and used in all its attempts; only told of a single job."
    )
    estimated_start: EstimatedStartView | None = Field(
        default=None, description="While it waits; null: it does not, or nobody can tell."
    )
    idle_warning: IdleWarningView | None = Field(
        default=None, description="It holds GPUs, does nothing, and was told so; only told of a single job."
    )


class AttemptView(View):
    id: str
    number: int
    allocation: AllocationView
    planned_at: str
    started_at: str | None
    ended_at: str | None
    end_reason: str | None
    exit_code: int | None
    message: str
    usage: UsageView | None = Field(default=None, description="What it has held and used.")


def allocation_view(allocation: Allocation) -> AllocationView:
    return AllocationView(
        model=allocation.model,
        grants=[
            GrantView(
                node=grant.node,
                gpus=list(grant.gpus),
                gpu_share=number(grant.gpu_milli / WHOLE) if grant.gpus else 0,
                cpus=number(grant.cpu_milli / WHOLE),
                memory_bytes=grant.memory_bytes,
            )
            for grant in allocation.grants
        ],
    )


def idle_warning_view(warning: IdleWarning) -> IdleWarningView:
    return IdleWarningView(
        warned_at=rfc3339(warning.warned_at),
        deadline=rfc3339(warning.deadline),
        extended_at=rfc3339_or_none(warning.extended_at),
    )


def job_view(
    record: JobRecord,
    caller: Caller,
    usage: UsageView | None = None,
    warning: IdleWarning | None = None,
    expected: Current | None = None,
) -> JobView:
    """The job as this caller may see it: commands and environments often hold keys, so only its owner sees them."""
    job, spec, request = record.job, record.spec, record.job.request
    may_see_all = caller.is_operator or caller.name == job.user
    return JobView(
        id=job.id,
        name=job.name,
        user=job.user,
        kind=job.kind,
        state=job.state,
        queue=job.queue,
        priority=job.priority,
        nodes=request.nodes,
        gpus=number(request.gpus + request.gpu_milli / WHOLE),
        cpus=number(request.cpu_milli / WHOLE),
        memory_bytes=request.memory_bytes,
        models=list(request.models),
        labels=dict(request.labels),
        flavor=spec.labels.get(FLAVOR_WORD),
        package=spec.labels.get(PACKAGE_WORD),
        preset=spec.preset,
        parameters=dict(spec.parameters) if may_see_all else {},
        command=list(spec.command) if may_see_all else [],
        env=dict(spec.env) if may_see_all else {},
        workdir=spec.workdir if may_see_all else None,
        image=spec.image if may_see_all else None,
        venv=spec.venv if may_see_all else None,
        time_limit_seconds=None if job.time_limit_seconds is None else number(job.time_limit_seconds),
        grace_seconds=number(job.grace_seconds),
        max_retries=job.max_retries,
        checkpoint_interval_seconds=(
            None if spec.checkpoint_interval_seconds is None else number(spec.checkpoint_interval_seconds)
        ),
        checkpointed_at=rfc3339_or_none(job.checkpointed_at),
        predicted=_prediction_view(job.predicted),
        created_at=rfc3339(job.created_at),
        queued_at=rfc3339_or_none(job.queued_at),
        started_at=rfc3339_or_none(job.started_at),
        ended_at=rfc3339_or_none(job.ended_at),
        pinned_at=rfc3339_or_none(job.pinned_at),
        attempt=job.attempt,
        attempt_id=job.attempt_id if job.attempt else None,
        allocation=allocation_view(job.allocation) if job.allocation is not None else None,
        elastic=_elastic_view(job),
        end_reason=job.end_reason,
        exit_code=job.exit_code,
        message=job.message,
        retries=job.retries,
        not_before=rfc3339(job.not_before) if job.not_before else None,
        stopping_for=job.stopping_for,
        preemptible=job.preemptible,
        preempted_for=job.preempted_for,
        preemptions=job.preemptions,
        after=list(job.after),
        array=_array_view(spec),
        usage=usage,
        estimated_start=estimated_start_view(expected),
        idle_warning=idle_warning_view(warning) if warning is not None and warning.attempt == job.attempt else None,
    )


def _array_view(spec: JobSpec) -> ArrayView | None:
    if spec.array_index is None:
        return None
    return ArrayView(name=spec.array_name, index=spec.array_index, size=spec.array_size)


def _prediction_view(prediction: Prediction | None) -> PredictionView | None:
    if prediction is None:
        return None
    return PredictionView(
        p50_seconds=number(prediction.p50_seconds),
        p90_seconds=number(prediction.p90_seconds),
        samples=prediction.samples,
        like=prediction.like,
    )


def _elastic_view(job: Job) -> ElasticView | None:
    if job.elastic is None:
        return None
    return ElasticView(
        min_gpus=job.elastic.min_gpus,
        max_gpus=job.elastic.max_gpus,
        utilization=None if job.utilization is None else number(job.utilization),
        resized_at=rfc3339_or_none(job.resized_at),
        next_gpus=None if job.next_allocation is None else list(job.next_allocation.gpus),
    )


def attempt_view(attempt: AttemptRecord, usage: UsageView | None = None) -> AttemptView:
    return AttemptView(
        id=attempt.id,
        number=attempt.number,
        allocation=allocation_view(attempt.allocation),
        planned_at=rfc3339(attempt.planned_at),
        started_at=rfc3339_or_none(attempt.started_at),
        ended_at=rfc3339_or_none(attempt.ended_at),
        end_reason=attempt.end_reason,
        exit_code=attempt.exit_code,
        message=attempt.message,
        usage=usage,
    )
