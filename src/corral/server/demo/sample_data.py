"""What the demo stores: files in its volumes, and a dataset that grows by three versions.

All of it is written by jobs, as anybody's is: so that usage is measured, and lineage has makers and users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from corral.control.datasets import datasets, operations
from corral.control.jobs.jobs import JobDraft, submit
from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import JobSpec
from corral.control.storage.mount_text import MountWord, parse_mount
from corral.core.model import Request
from corral.server.demo.sample_setup import DATASET, OPERATOR, VOLUMES

#: tag, message, parts that the version has
VERSIONS = (
    ("v1", "as it was labelled", 3),
    ("v2", "more streets at night", 5),
    ("v3", "wrong labels repaired", 6),
)
#: MiB that are written into each volume, one after another
FILLS = (96, 12, 240)
#: Parts stay as they were, except that each version has another second one: most of it is stored only once.
_LABEL = (
    'mkdir -p "$CORRAL_OUTPUT_DIR/train" && cd "$CORRAL_OUTPUT_DIR" && '
    "for i in $(seq {parts}); do label=car; [ $i = 2 ] && label=car-{tag}; "
    'seq $((8000 + i * 1500)) | sed "s/^/street-$i-/;s/$/.jpg,$label/" > train/part-$i.csv; done; '
    "seq 3000 > val.csv; echo 'road scenes, {tag}: {message}' > README.md; echo {parts} parts"
)
_FILL = 'head -c {mib}M /dev/zero > "$CORRAL_JOB_DIR/mounts/{name}/part-0"; echo {mib} MiB written'


def deliveries(controller: Controller, wake: Callable[[], None]) -> Iterator[None]:
    """One small step at a time, and nothing at the second start. `wake` has commits begun."""
    if controller.execute(head).result() is not None:
        return
    controller.execute(_fill_volumes).result()
    for tag, message, parts in VERSIONS:
        job_id = controller.execute(_label, tag, message, parts).result()
        while controller.execute(_is_live, job_id).result():
            yield
        before = controller.execute(head).result()
        operation_id = controller.execute(_commit, job_id, message).result()
        wake()
        while not controller.execute(_is_over, operation_id).result():
            yield
        if controller.execute(head).result() == before:
            return
        controller.execute(datasets.tag, OPERATOR, DATASET, tag, "latest").result()


def head(work: Work) -> str | None:
    dataset = work.tx.datasets.find(OPERATOR.name, DATASET)
    return None if dataset is None else dataset.head


def _fill_volumes(work: Work) -> None:
    for (owner, name, _, _), mib in zip(VOLUMES, FILLS, strict=True):
        command = _FILL.format(mib=mib, name=name)
        submit(work, Caller(name=owner), [_job(f"fill-{name}", command, parse_mount(f"{name}:/{name}:rw"))])


def _label(work: Work, tag: str, message: str, parts: int) -> str:
    command = _LABEL.format(tag=tag, message=message, parts=parts)
    (record,) = submit(work, OPERATOR, [_job(f"label-{DATASET}-{tag}", command)])
    return record.job.id


def _job(name: str, command: str, *mounts: MountWord) -> JobDraft:
    spec = JobSpec(command=("sh", "-ec", command))
    return JobDraft(name=name, request=Request(cpu_milli=1000), time_limit_seconds=300.0, spec=spec, mounts=mounts)


def _is_live(work: Work, job_id: str) -> bool:
    record = work.tx.jobs.get(job_id)
    return record is not None and not record.job.state.is_ended


def _commit(work: Work, job_id: str, message: str) -> str:
    source = {"kind": "job", "job": job_id, "path": ""}
    return operations.request_commit(
        work, OPERATOR, DATASET, source=source, message=message, parent=None, produced_by=job_id
    ).id


def _is_over(work: Work, operation_id: str) -> bool:
    operation = work.tx.datasets.operation(operation_id)
    return operation is None or operation.state.is_over
