"""The comment of an attempt's Slurm job: the job's name, and what a restored server needs to know of the attempt. Pure.

A comment belongs to the job's owner, who may change it: nothing in it is trusted beyond its form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.control.ports import LaunchOrder
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob

#: Slurm refuses longer ones than 1,024.
MAX_CHARS = 1000
DEFAULT_GRACE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    limit_seconds: float | None = None
    #: the GPUs of the plan by node, in the order of ranks; empty if they are unknown
    gpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def comment(name: str, order: LaunchOrder) -> str:
    """The GPUs of a large gang are left out: Slurm knows which ones the job has."""
    times = {"grace": order.grace_seconds, "limit": order.time_limit_seconds}
    gpus = {instance.node: [_index(gpu, instance.node) for gpu in instance.gpu_ids] for instance in order.instances}
    whole = f"{name} {json.dumps({**times, 'gpus': gpus}, separators=(',', ':'))}"
    return whole if len(whole) <= MAX_CHARS else f"{name} {json.dumps(times, separators=(',', ':'))}"


def remark(job: SlurmJob) -> Remark:
    try:
        found = json.loads(job.comment.partition(" ")[2])
        grace, limit = float(found["grace"]), found["limit"]
        limit = None if limit is None else float(limit)
        gpus = _gpus(found.get("gpus", {}), job)
    except (AttributeError, KeyError, TypeError, ValueError):
        return Remark()
    if not math.isfinite(grace) or grace < 0 or not (limit is None or (math.isfinite(limit) and limit > 0)):
        return Remark()
    return Remark(grace_seconds=grace, limit_seconds=limit, gpus=gpus)


def _index(gpu: str, node: str) -> str:
    """The part of the id of a GPU after the name of its node."""
    return gpu.removeprefix(node)


def _gpus(found: Mapping[str, Any], job: SlurmJob) -> dict[str, tuple[str, ...]]:
    """Empty if they are not as many as the job has on these nodes."""
    gpus = {str(node): tuple(dict.fromkeys(f"{node}{end}" for end in ends)) for node, ends in found.items()}
    is_of_job = set(gpus) == set(job.nodes) and all(len(ids) == job.gpus_on(node) for node, ids in gpus.items())
    return gpus if is_of_job else {}
