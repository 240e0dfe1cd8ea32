"""Cloning: a new job with the settings of another one, and changed values."""

from __future__ import annotations

from dataclasses import fields, replace

from corral.control.errors import Forbidden, Invalid
from corral.control.fleet.catalog import FLAVOR_LABEL, PACKAGE_LABEL
from corral.control.jobs.admission import queue_refusal
from corral.control.jobs.job_kinds import check_declared
from corral.control.jobs.job_references import free_name
from corral.control.jobs.jobs import JobChange, JobDraft, make_job, own_job, submit
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import KEPT_LABEL, JobRecord, JobSpec
from corral.control.scheduling.queue_choice import is_within_reach
from corral.control.storage.mount_text import requested_again
from corral.control.storage.mounts import in_cluster
from corral.core.jobs.job_fields import KEPT_BY_JOB, KEPT_BY_SPEC
from corral.core.model import CLUSTER_LABEL, Job, Request

#: Fields of the API that are replaced in the spec as a whole, with the names of the spec's fields.
SPEC_FIELDS = {
    **{field.name: field.name for field in fields(JobSpec) if field.name not in ("env", "labels", "task", "task_mode")},
    **{field.name: field.attribute for field in KEPT_BY_SPEC},
    "idle_stop": "idle_stop_seconds",
}
#: Words that say how large the job is: beside one of them a package's name would be wrong.
SIZE_FIELDS = frozenset({"gpus", "cpus", "memory"})


def clone(work: Work, caller: Caller, ref: str, change: JobChange) -> JobRecord:
    """Submit a job once more, under another name. Only its owner can: it brings its environment, secrets included."""
    job = own_job(work, caller, ref)
    if job.user != caller.name:
        raise Forbidden(f"{job.id} is {job.user}'s, and a clone would bring its environment: only {job.user} clones it")
    spec = work.jobs.spec(job.id)
    if spec.task is not None:
        raise Invalid(f"{job.id} holds GPUs for a task: use corral allocate", field="job")
    draft = merged(job, spec, change)
    if "mounts" not in change.given:
        # Looked up anew: it may not be shared any more, and another cluster may be asked for.
        draft = replace(draft, mounts=requested_again(spec.mounts), spec=replace(draft.spec, mounts=()))
    if draft.name is None:
        draft = replace(draft, name=free_name(work, job.user, job.name))
    if draft.queue is None and "queue" not in change.given:
        draft = replace(draft, queue=_same_queue(work, caller, job, draft))
    (record,) = submit(work, caller, [draft])
    work.record(caller, "job.cloned", record.job.id, owner=record.job.user, detail={"of": job.id})
    return record


def merged(job: Job, spec: JobSpec, change: JobChange) -> JobDraft:
    """A draft of the same job with what is to be different about it."""
    given, new = change.given, change.draft
    clone_spec, request = _spec(spec, change), _request(job.request, spec, change)
    if "kind" in given:
        check_declared(new.declared_kind, clone_spec, request)
    keeps_size = job.elastic is not None and not given & {"gpus", "package", "nodes"}
    return replace(
        new,
        min_gpus=job.elastic.min_gpus if keeps_size and job.elastic and "min_gpus" not in given else new.min_gpus,
        max_gpus=job.elastic.max_gpus if keeps_size and job.elastic and "max_gpus" not in given else new.max_gpus,
        spec=clone_spec,
        request=request,
        kind=None,
        after=new.after if "after" in given else job.after,
        **{field.attribute: getattr(new if field.name in given else job, field.attribute) for field in KEPT_BY_JOB},
    )


def _spec(spec: JobSpec, change: JobChange) -> JobSpec:
    """Variables and labels are added to those that are there; everything else takes the place of what was."""
    given, new = change.given, change.draft.spec
    labels = _own_labels(spec, change)
    for label in (FLAVOR_LABEL, PACKAGE_LABEL):
        if label in spec.labels and not _outdated(label, given):
            labels[label] = spec.labels[label]
    replaced = {name: getattr(new, name) for field_name, name in SPEC_FIELDS.items() if field_name in given}
    if "command" in given:
        # Another program is not the preset's any more, nor a workbench.
        replaced |= {"preset": None, "parameters": {}, "jupyter": False, "ssh": False}
    return replace(spec, env={**spec.env, **new.env}, labels=labels, **replaced)


def _request(request: Request, spec: JobSpec, change: JobChange) -> Request:
    given, new = change.given, change.draft.request
    if given & {"flavor", "package"}:
        # What the old ones had brought goes with them.
        labels = tuple(sorted(_own_labels(spec, change).items()))
        request = replace(request, models=(), labels=labels)
    if "package" in given and change.draft.package is not None:
        request = Request(nodes=request.nodes, labels=request.labels)
    if "nodes" in given:
        request = replace(request, nodes=new.nodes)
    if "gpus" in given:
        request = replace(request, gpus=new.gpus, gpu_milli=new.gpu_milli)
    if "cpus" in given:
        request = replace(request, cpu_milli=new.cpu_milli)
    if "memory" in given:
        request = replace(request, memory_bytes=new.memory_bytes)
    if "model" in given:
        request = replace(request, models=new.models)
    request = replace(request, labels=tuple(sorted({**dict(request.labels), **dict(new.labels)}.items())))
    # Where its volumes are is looked up with them.
    return in_cluster(request, _own_labels(spec, change).get(CLUSTER_LABEL))


def _own_labels(spec: JobSpec, change: JobChange) -> dict[str, str]:
    """The labels that users gave, without those that corral sets."""
    kept = {key: value for key, value in spec.labels.items() if key not in (FLAVOR_LABEL, PACKAGE_LABEL, KEPT_LABEL)}
    return {**kept, **change.draft.spec.labels}


def _outdated(label: str, given: frozenset[str]) -> bool:
    """Whether the name out of the catalog would not describe the clone any more."""
    if "package" in given or "flavor" in given:
        return True
    return bool(given & (SIZE_FIELDS if label == PACKAGE_LABEL else {"model"}))


def _same_queue(work: Work, caller: Caller, job: Job, draft: JobDraft) -> str | None:
    """The queue of the original, unless it would not take the clone: then the right one."""
    queue = work.state.snapshot.queues.get(job.queue)
    if queue is None or not is_within_reach(work.state.snapshot, caller.name, queue):
        return None
    return queue.name if queue_refusal(work.state, queue, make_job(work, caller, draft)) is None else None
