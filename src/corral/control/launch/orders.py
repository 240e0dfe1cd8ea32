"""Makes the launch order of a planned attempt, which an engine gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from corral.control.launch.packed_items import RESUMES, packed_command
from corral.control.ports import GitOrder, Instance, LaunchOrder, StorageKind, StorageOrder
from corral.control.records import JobSpec
from corral.control.storage.mounts import storage_orders, variable
from corral.core.model import Job, JobKind, Node
from corral.core.storage.volumes import Volume


def launch_order(
    job: Job,
    spec: JobSpec,
    nodes: Mapping[str, Node],
    env: Mapping[str, str],
    volumes: Mapping[str, Volume] = MappingProxyType({}),
    group: str | None = None,
) -> LaunchOrder:
    """`env` comes from the platform and cannot be overridden by the job."""
    assert job.allocation is not None
    instances = []
    for rank, grant in enumerate(job.allocation.grants):
        node = nodes.get(grant.node)
        gpu_of = {gpu.id: gpu for gpu in node.gpus} if node else {}
        held = [gpu_of[gpu] for gpu in grant.gpus if gpu in gpu_of]
        instances.append(
            Instance(
                rank=rank,
                node=grant.node,
                gpu_ids=grant.gpus,
                gpu_indexes=tuple(gpu.index for gpu in held),
                gpu_milli=grant.gpu_milli,
                gpu_memory_bytes=min((gpu.memory_bytes for gpu in held), default=0),
            )
        )
    storage = storage_orders(spec, volumes)
    return LaunchOrder(
        attempt_id=job.attempt_id,
        job_id=job.id,
        user=job.user,
        command=_command(job, spec, instances),
        instances=tuple(instances),
        is_distributed=job.kind is JobKind.DISTRIBUTED,
        env={**spec.env, **env, **_array_env(job, spec), **_dataset_env(storage)},
        workdir=spec.workdir,
        time_limit_seconds=job.time_left_seconds,
        grace_seconds=job.grace_seconds,
        memory_bytes=job.request.memory_bytes,
        cpu_milli=job.request.cpu_milli,
        image=spec.image,
        venv=spec.venv,
        storage=storage,
        secrets=spec.secrets,
        has_app=spec.has_app,
        git=_git_order(spec),
        group=group,
    )


def _git_order(spec: JobSpec) -> GitOrder | None:
    if not spec.git:
        return None
    return GitOrder(
        url=spec.git, ref=spec.git_ref, commit=spec.git_commit, directory=spec.git_dir, secret=spec.git_secret
    )


def _command(job: Job, spec: JobSpec, instances: Sequence[Instance]) -> tuple[str, ...]:
    # Braces in the commands of other jobs are passed on unchanged.
    command = _filled_for(instances, spec.command) if job.elastic or spec.preset else spec.command
    return packed_command(command, spec.items) if spec.items else command


def _filled_for(instances: Sequence[Instance], command: Sequence[str]) -> tuple[str, ...]:
    """One command for all instances: the indexes, which differ between nodes, are those of a job on one node only."""
    if len(instances) == 1:
        return filled(command, instances[0].gpu_indexes)
    return tuple(_replaced(argument, {"{gpu_count}": str(len(instances[0].gpu_indexes))}) for argument in command)


def filled(command: Sequence[str], gpu_indexes: Sequence[int]) -> tuple[str, ...]:
    """A command with the GPUs of this attempt in it: `{gpu_list}` are their indexes, `{gpu_count}` their number."""
    values = {"{gpu_list}": ",".join(map(str, gpu_indexes)), "{gpu_count}": str(len(gpu_indexes))}
    return tuple(_replaced(argument, values) for argument in command)


def _replaced(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _dataset_env(storage: Sequence[StorageOrder]) -> dict[str, str]:
    """The version of each dataset, as variables that the program can store with its results."""
    return {
        f"CORRAL_DATASET_{variable(order.name)}_VERSION": order.version
        for order in storage
        if order.kind is StorageKind.DATASET
    }


def _array_env(job: Job, spec: JobSpec) -> dict[str, str]:
    if spec.array_index is None:
        return {}
    resumes = {RESUMES: "1"} if spec.items and job.attained_seconds else {}
    return {
        **resumes,
        "CORRAL_ARRAY_INDEX": str(spec.array_index),
        "CORRAL_ARRAY_SIZE": str(spec.array_size),
        "CORRAL_ARRAY_NAME": spec.array_name,
    }
