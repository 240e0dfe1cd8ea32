"""Creates the draft of a job from a request body, for the use cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corral.control.errors import Invalid, about_item, in_list
from corral.control.jobs.job_kinds import check_declared
from corral.control.jobs.jobs import JobChange, JobDraft
from corral.control.records import TASK_LABEL, JobSpec
from corral.control.storage.mount_text import MountRequest, mount_request, parse_mount
from corral.core.jobs.apps import app_command
from corral.core.jobs.field_types import JobField
from corral.core.jobs.job_fields import KEPT_BY_JOB, KEPT_BY_SPEC
from corral.core.model import JobKind, Request
from corral.core.quantities import parse_cpus, parse_gpus
from corral.server.schemas.jobs.job_bodies import JobClone, JobCreate, JobEdit, MountBody


def draft_of(body: JobCreate) -> JobDraft:
    _check_package_alone(body)
    _check_elastic_fields(body)
    whole, share = parse_gpus(body.gpus)
    labels = body.labels or {}
    spec = JobSpec(
        command=_command(body),
        env=body.env or {},
        labels=labels,
        # The preset has already rendered them.
        parameters={name: str(value) for name, value in (body.parameters or {}).items()},
        **_kept(body, KEPT_BY_SPEC),
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
        min_gpus=body.min_gpus,
        max_gpus=body.max_gpus,
        hold=body.hold,
        after=tuple(body.after or ()),
        mounts=tuple(_mount_of(mount) for mount in body.mounts or ()),
        **_kept(body, KEPT_BY_JOB),
    )


def _command(body: JobCreate) -> tuple[str, ...]:
    """The command of the job. For a known app, its program with the given arguments."""
    given = tuple(body.command)
    if body.app is None:
        if body.app_name and body.port is None and not isinstance(body, JobClone):
            raise Invalid("app_name is the name of the page at port: give port, too", field="app_name")
        return given
    if body.port is not None:
        raise Invalid("an app that corral knows has a port of its own: leave app or port out", field="port")
    try:
        return app_command(body.app, given)
    except ValueError as error:
        raise Invalid(str(error), field="app") from None


def _kept(body: JobCreate, fields: Sequence[JobField]) -> dict[str, Any]:
    return {field.attribute: getattr(body, field.name) for field in fields}


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


def clone_of(body: JobClone) -> JobChange:
    # Another app is another command.
    with_app = {"command"} if body.app is not None else set()
    return JobChange(given=frozenset(body.model_fields_set | with_app), draft=draft_of(body))


def change_of(body: JobEdit) -> JobChange:
    """An edit is described like a clone: the same fields have the same meaning."""
    return clone_of(JobClone(**{name: getattr(body, name) for name in body.model_fields_set}))


def _check_package_alone(body: JobCreate) -> None:
    """A package is the whole size: even a 0 in another field would contradict it."""
    given = [field for field in ("gpus", "cpus", "memory", "flavor") if field in body.model_fields_set]
    if body.package is not None and given:
        raise Invalid(f"package {body.package} says it already: leave {given[0]} out", field=given[0])


def _check_elastic_fields(body: JobCreate) -> None:
    """An elastic job's size is two numbers; a third would contradict them. They replace a preset's size."""
    if body.min_gpus is None and body.max_gpus is None:
        return
    if body.package is not None:
        raise Invalid(f"package {body.package} says it already: leave min_gpus and max_gpus out", field="min_gpus")
    if "gpus" in body.model_fields_set and body.preset is None:
        raise Invalid("an elastic job has min_gpus and max_gpus instead", field="gpus")
