"""API schemas: jobs as they are shown. Request bodies are in `job_bodies`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from corral.control.fleet.catalog import FLAVOR_LABEL, PACKAGE_LABEL
from corral.control.live.unit_of_work import Caller
from corral.control.records import KEPT_LABEL, AttemptRecord, IdleWarning, JobRecord, JobSpec, MountKind, MountSpec
from corral.core.jobs.field_types import JobField
from corral.core.jobs.job_fields import KEPT_BY_JOB, KEPT_BY_SPEC
from corral.core.model import WHOLE, Allocation, Job, JobKind, JobState, Prediction
from corral.core.quantities import format_bytes
from corral.server.scheduling.estimate_worker import Current
from corral.server.schemas.base import Number, View, number, rfc3339, rfc3339_or_none
from corral.server.schemas.monitoring.measurements import UsageView
from corral.server.schemas.scheduling.estimates import EstimatedStartView, estimated_start_view
from corral.server.settings.disk_limits import DiskLimits
from corral.server.system.disk_watch import JobDisk


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
    utilization: Number | None = Field(
        description="Recently measured utilisation of the job's GPUs; null: not known yet."
    )
    resized_at: str | None
    next_gpus: list[str] | None = Field(description="While the job is resized: GPUs of its next attempt.")


class PredictionView(View):
    """The predicted run time from the next start on, computed when the job was last queued."""

    p50_seconds: Number
    p90_seconds: Number
    samples: int = Field(description="Number of completed runs that the prediction is based on.")
    like: str = Field(description="Properties that those runs have in common with the job.")


class IdleWarningView(View):
    warned_at: str
    #: when it is stopped unless it uses its GPUs
    deadline: str
    #: when it was given more time, which can be done once
    extended_at: str | None


class JobDiskView(View):
    """The disk use of a running job on its node, as it was last measured."""

    bytes: int = Field(description="Size of the job directory, the working directory, local and temporary storage.")
    limit_bytes: int | None = Field(
        description="Above it the job fails with `disk_quota`; requested local storage comes on top."
    )
    temporary_bytes: int = Field(description="Size of the temporary directory and of the changes to the image.")
    temporary_limit_bytes: int | None = Field(description="The job is evicted at 90 % of it.")


def disk_view(disk: JobDisk, limits: DiskLimits) -> JobDiskView:
    return JobDiskView(
        bytes=disk.bytes,
        limit_bytes=limits.job_bytes,
        temporary_bytes=disk.temporary_bytes,
        temporary_limit_bytes=limits.temporary_bytes,
    )


class ArrayView(View):
    """The array that a job belongs to."""

    name: str
    index: int
    size: int
    items: tuple[int, ...] = Field(description="The items that a job of a packed array runs; otherwise empty.")


class MountView(View):
    """Storage that a job mounts."""

    kind: MountKind
    source: str = Field(description="As it was given: a volume, NAME@VERSION of a dataset, or a size of local disk.")
    path: str
    mode: str = Field(description="ro or rw.")
    volume_id: str | None
    dataset: str | None
    version: str | None
    prefetch: bool


class JobCountsView(View):
    total: int
    by_state: dict[str, int] = Field(description="Every state, also states without jobs.")


class JobView(View):
    id: str
    name: str
    description: str = ""
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
    flavor: str | None = Field(description="The package at submission; later changes of the package have no effect.")
    package: str | None
    preset: str | None = Field(default=None, description="The preset that the job was made from.")
    parameters: dict[str, str] = Field(
        default_factory=dict,
        description="Values for the preset's parameters; shown to the same callers as the command.",
    )
    command: list[str] = Field(
        description="The command, env and workdir are shown to the job's owner and to operators only."
    )
    env: dict[str, str]
    secrets: tuple[str, ...] | None = Field(
        default=None, description="Secrets that the job gets, without their values; shown like the command."
    )
    app: str | None = Field(default=None, description="The web program of the job, if corral knows it.")
    app_port: int | None = Field(default=None, description="The port at which the job's own program serves a page.")
    app_name: str = ""
    workdir: str | None
    git: str | None = Field(default=None, description="The address of its Git repository; shown like the command.")
    git_ref: str | None = Field(default=None, description="The branch, tag or commit as it was given.")
    git_commit: str | None = Field(default=None, description="The commit in which the program begins.")
    git_dir: str | None = None
    git_secret: str | None = Field(default=None, description="The secret with the key or token, without its value.")
    image: str | None = Field(default=None, description="As it was given: the name of an image, or an address.")
    venv: str | None = None
    time_limit_seconds: Number | None
    grace_seconds: Number
    max_retries: int
    retry_on: tuple[str, ...] = Field(description="Failures of the program that lead to another attempt.")
    idles: bool = Field(description="Whether the job may hold GPUs without using them for long.")
    restart_if_hung: bool = Field(
        description="Whether the job is restarted elsewhere if its program reports no more steps."
    )
    hung_since: str | None = Field(
        description="Since when the program has done no step; null: it is not known to hang."
    )
    slow_since: str | None = Field(description="Since when the program does far fewer steps per minute than before.")
    checkpoint_interval_seconds: Number | None = Field(
        description="Interval at which the program should save checkpoints; null: the installation's default."
    )
    commit_outputs: str = Field(
        default="", description="DATASET or DATASET=PATH: outputs that become a version when the job completes."
    )
    checkpointed_at: str | None = Field(description="Time at which the program last saved a checkpoint.")
    predicted: PredictionView | None = Field(description="null: no similar job has completed yet.")
    created_at: str
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    pinned_at: str | None
    kept: bool = Field(default=False, description="Retention never removes a pinned job.")
    attempt: int
    attempt_id: str | None
    allocation: AllocationView | None
    elastic: ElasticView | None = Field(
        default=None,
        description="Set for an elastic job, which grows and shrinks; gpus is its present size, or its minimum.",
    )
    restart_unsaved: bool = Field(
        description="Whether the job may start over for a resize before it has saved a checkpoint."
    )
    end_reason: str | None
    exit_code: int | None
    message: str
    retries: int
    faults: int = Field(
        description="Platform failures in a row since the last checkpoint; they do not count as retries."
    )
    not_before: str | None
    stopping_for: str | None
    preemptible: bool
    preempted_for: str | None = Field(
        description="The job that this job was preempted for; set until this job starts again."
    )
    preemptions: int = Field(description="Number of preemptions since the owner last started the job.")
    after: list[str] = Field(description="Jobs that must complete before this job may start.")
    mounts: list[MountView] = Field(default_factory=list, description="Shown to its owner and to operators only.")
    array: ArrayView | None = None
    usage: UsageView | None = Field(
        default=None, description="Resources held and used in all attempts of the job; only set for a single job."
    )
    disk: JobDiskView | None = Field(
        default=None,
        description="Disk use of a running job; null: not measured yet, or its disk cannot be measured. Only set for a "
        "single job.",
    )
    estimated_start: EstimatedStartView | None = Field(
        default=None,
        description="Estimated start of a waiting job; null: the job does not wait, or no estimate exists.",
    )
    idle_warning: IdleWarningView | None = Field(
        default=None,
        description="Set if the owner was warned that the job does not use its GPUs; only set for a single job.",
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
    usage: UsageView | None = Field(default=None, description="Resources held and used in the attempt.")


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
    """The job as this caller may see it: commands and environments often contain keys, so only the job's owner and
    operators see them."""
    job, spec, request = record.job, record.spec, record.job.request
    may_see_all = caller.is_operator or caller.name == job.user
    return JobView(
        id=job.id,
        name=job.name,
        user=job.user,
        kind=job.kind,
        state=job.state,
        queue=job.queue,
        nodes=request.nodes,
        gpus=number(request.gpus + request.gpu_milli / WHOLE),
        cpus=number(request.cpu_milli / WHOLE),
        memory_bytes=request.memory_bytes,
        models=list(request.models),
        labels=dict(request.labels),
        kept=KEPT_LABEL in spec.labels,
        flavor=spec.labels.get(FLAVOR_LABEL),
        package=spec.labels.get(PACKAGE_LABEL),
        parameters=dict(spec.parameters) if may_see_all else {},
        command=list(spec.command) if may_see_all else [],
        env=dict(spec.env) if may_see_all else {},
        git_commit=spec.git_commit if may_see_all else None,
        checkpointed_at=rfc3339_or_none(job.checkpointed_at),
        hung_since=rfc3339_or_none(job.hung_since),
        slow_since=rfc3339_or_none(job.slow_since),
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
        faults=job.faults,
        not_before=rfc3339(job.not_before) if job.not_before else None,
        stopping_for=job.stopping_for,
        preempted_for=job.preempted_for,
        preemptions=job.preemptions,
        after=list(job.after),
        mounts=[mount_view(mount) for mount in spec.mounts] if may_see_all else [],
        array=_array_view(spec),
        usage=usage,
        estimated_start=estimated_start_view(expected),
        idle_warning=idle_warning_view(warning) if warning is not None and warning.attempt == job.attempt else None,
        **_kept(job, KEPT_BY_JOB, may_see_all),
        **_kept(spec, KEPT_BY_SPEC, may_see_all),
    )


def _kept(keeper: Job | JobSpec, fields: Sequence[JobField], may_see_all: bool) -> dict[str, Any]:
    """The values of fields that are shown as they are kept."""
    values = {}
    for field in fields:
        value = getattr(keeper, field.attribute) if may_see_all or not field.is_private else None
        values[field.attribute] = number(value) if isinstance(value, float) else value
    return values


def mount_view(mount: MountSpec) -> MountView:
    is_local = mount.kind is MountKind.LOCAL
    return MountView(
        kind=mount.kind,
        source=format_bytes(mount.size_bytes) if is_local else mount.source,
        path=mount.path,
        mode="ro" if mount.read_only else "rw",
        volume_id=mount.volume_id,
        dataset=mount.dataset_id,
        version=mount.version,
        prefetch=mount.prefetch,
    )


def _array_view(spec: JobSpec) -> ArrayView | None:
    if spec.array_index is None:
        return None
    return ArrayView(name=spec.array_name, index=spec.array_index, size=spec.array_size, items=spec.items)


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
