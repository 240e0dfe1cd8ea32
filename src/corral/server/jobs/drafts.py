"""From a request body to the draft of a job for the use cases."""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.errors import Invalid, about_item, in_list
from corral.control.jobs.job_clone import CloneChange
from corral.control.jobs.job_edit import SIZE_FIELDS, JobChange
from corral.control.jobs.job_kinds import check_declared
from corral.control.jobs.jobs import JobDraft
from corral.control.records import TASK_LABEL, JobSpec
from corral.control.storage.mount_text import MountRequest, mount_request, parse_mount
from corral.core.model import JobKind, Request
from corral.core.quantities import parse_cpus, parse_gpus
from corral.server.schemas.jobs.job_bodies import JobClone, JobCreate, JobEdit, MountBody


def draft_of(body: JobCreate) -> JobDraft:
    _check_package_alone(body)
    _check_elastic_alone(body)
    whole, share = parse_gpus(body.gpus)
    labels = body.labels or {}
    spec = JobSpec(
        command=tuple(body.command),
        env=body.env or {},
        workdir=body.workdir,
        labels=labels,
        image=body.image,
        venv=body.venv,
        checkpoint_interval_seconds=body.checkpoint_interval,
        preset=body.preset,
        # The preset has already rendered them.
        parameters={name: str(value) for name, value in (body.parameters or {}).items()},
    )
    request = Request(
        nodes=body.nodes,
        gpus=whole,
        gpu_milli=share,
        cpu_milli=parse_cpus(body.cpus),
        memory_bytes=body.memory,
        models=tuple(sorted(set(body.model or ()))),
        labels=tuple(sorted(labels.items())),
    )
    if TASK_LABEL in labels:
        raise Invalid(f"the label {TASK_LABEL!r} is for tasks that hold GPUs: give it another name", field="labels")
    declared = None if body.kind is None else JobKind(body.kind)
    if not isinstance(body, JobClone):
        # For a clone this is known only with the original job.
        check_declared(declared, spec, request)
    return JobDraft(
        spec=spec,
        request=request,
        name=body.name,
        declared_kind=declared,
        queue=body.queue,
        flavor=body.flavor,
        package=body.package,
        priority=body.priority,
        time_limit_seconds=body.time,
        grace_seconds=body.grace,
        max_retries=body.max_retries,
        preemptible=body.preemptible,
        min_gpus=body.min_gpus,
        max_gpus=body.max_gpus,
        hold=body.hold,
        after=tuple(body.after or ()),
        mounts=tuple(_mount_of(mount) for mount in body.mounts or ()),
    )


def _mount_of(body: str | MountBody) -> MountRequest:
    if isinstance(body, str):
        return parse_mount(body)
    return mount_request(body.source, body.path, mode=body.mode, prefetch=body.prefetch)


def drafts_of(bodies: Sequence[JobCreate]) -> list[JobDraft]:
    """Drafts for a list of jobs; a refusal names the job."""
    drafts = []
    for number, body in enumerate(bodies):
        with in_list("jobs"), about_item(number):
            drafts.append(draft_of(body))
    return drafts


def clone_of(body: JobClone) -> CloneChange:
    return CloneChange(given=frozenset(body.model_fields_set), draft=draft_of(body))


def change_of(body: JobEdit) -> JobChange:
    """The size is edited like a clone's: the same fields have the same meaning."""
    given = frozenset(body.model_fields_set)
    size = JobClone(**{word: getattr(body, word) for word in given & SIZE_FIELDS})
    return JobChange(
        given=given,
        queue=body.queue,
        priority=body.priority,
        time_limit_seconds=body.time,
        preemptible=body.preemptible,
        after=tuple(body.after or ()),
        size=draft_of(size),
    )


def _check_package_alone(body: JobCreate) -> None:
    """A package is the whole size: even a 0 in another field would contradict it."""
    given = [field for field in ("gpus", "cpus", "memory", "flavor") if field in body.model_fields_set]
    if body.package is not None and given:
        raise Invalid(f"package {body.package} says it already: leave {given[0]} out", field=given[0])


def _check_elastic_alone(body: JobCreate) -> None:
    """An elastic job's size is two numbers; a third would contradict them. They replace a preset's size."""
    if body.min_gpus is None and body.max_gpus is None:
        return
    if body.package is not None:
        raise Invalid(f"package {body.package} says it already: leave min_gpus and max_gpus out", field="min_gpus")
    if "gpus" in body.model_fields_set and body.preset is None:
        raise Invalid("an elastic job says min_gpus and max_gpus: leave gpus out", field="gpus")
