"""Converts a launch order into a Slurm job: immediate refusals, the submission, and the environment."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corral.control.ports import Instance, LaunchOrder, LaunchRefused
from corral.core.model import WHOLE
from corral.engines.attempts.environment import account_environment, base_environment, job_environment
from corral.engines.attempts.processes import with_venv
from corral.engines.order_checks import check_cluster_order
from corral.engines.slurm.attempts import run_directory
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.cluster.nodes import MIB, FleetRules, gpus_asked
from corral.engines.slurm.cluster.partitions import Partition, Place, place_for
from corral.engines.slurm.slurm_api import job_comments
from corral.engines.slurm.slurm_api.commands import Account, Submission
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode
from corral.engines.slurm.slurm_images import IMAGE_TMP, ImageRules, check_image

#: A Slurm job that is still pending after this long waits for jobs of other users: it is taken back, and corral plans
#: again.
PENDING_SECONDS = 20.0
DEFAULT_LOG_LIMIT = 64 << 20
FIRST_PORT, PORTS = 20_000, 12_000
MAX_ORDER_CHARS = 4 << 20
#: the language of corral's script on the nodes; programs do not see it
_SCRIPT_LANGUAGE = {"LANG": "C.UTF-8", "LC_ALL": "C"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmRules:
    """How jobs are submitted to this cluster."""

    fleet: FleetRules = field(default_factory=FleetRules)
    #: the partitions for jobs, the best first; empty means any
    partitions: tuple[str, ...] = ()
    #: the longest run time that Slurm allows, if it is shorter than the partition's limit
    max_minutes: int | None = None
    account: str = ""
    qos: str = ""
    #: the CPUs of a job that asks for none
    cpus_per_gpu: int = 1
    extra: tuple[str, ...] = ()
    #: the PATH of jobs
    path: str = "/usr/local/bin:/usr/bin:/bin"
    log_limit_bytes: int = DEFAULT_LOG_LIMIT
    pending_seconds: float = PENDING_SECONDS
    images: ImageRules = field(default_factory=ImageRules)


def check_order(order: LaunchOrder, images: ImageRules) -> None:
    """Raises LaunchRefused for an order that can never run here."""
    check_cluster_order(order, run_directory.is_safe_id, MAX_ORDER_CHARS)
    check_image(order, images)
    if any(instance.gpu_milli != WHOLE for instance in order.instances if instance.gpu_ids):
        raise LaunchRefused("a Slurm cluster gives out whole GPUs only")


def place_of(order: LaunchOrder, rules: SlurmRules, partitions: Sequence[Partition]) -> Place:
    """Partition and Slurm's own time limit, which is longer than the limit that the nodes enforce to the second. Raises
    LaunchRefused and PartitionClosed."""
    return place_for(
        partitions,
        [instance.node for instance in order.instances],
        named=rules.partitions,
        limit_seconds=order.time_limit_seconds,
        spare_seconds=order.grace_seconds,
        max_minutes=rules.max_minutes,
    )


def submission(
    order: LaunchOrder,
    rules: SlurmRules,
    submitter: Submitter | None,
    place: Place,
    nodes: Mapping[str, SlurmNode],
    *,
    name: str,
    script: str,
) -> Submission:
    """The Slurm job of an attempt. `nodes` are its nodes, as Slurm reports them."""
    first = order.instances[0]
    asked = -(-order.cpu_milli // WHOLE) if order.cpu_milli else rules.cpus_per_gpu * len(first.gpu_ids)
    return Submission(
        name=name,
        comment=job_comments.comment(name, order),
        script=script,
        nodes=tuple(instance.node for instance in order.instances),
        gpus=gpus_asked({instance.node: instance.gpu_ids for instance in order.instances}, nodes),
        cpus=max(1, asked),
        memory_mib=-(-order.memory_bytes // MIB) if order.memory_bytes else None,
        minutes=place.minutes,
        workdir="/",
        partition=place.partition,
        account=(submitter.slurm_account if submitter else "") or rules.account,
        qos=rules.qos,
        env={"PATH": rules.path, "HOME": "/", **_SCRIPT_LANGUAGE},
        run_as=run_as(submitter),
        extra=rules.extra,
    )


def instance_environment(
    order: LaunchOrder, instance: Instance, rules: SlurmRules, submitter: Submitter | None, *, master_addr: str
) -> dict[str, str]:
    """The environment of one instance's program, without variables of the server."""
    own = base_environment({"PATH": rules.path, "LANG": "C.UTF-8"}, python_dir="")
    account = account_environment(submitter.account) if submitter is not None else {}
    env = job_environment(
        order,
        instance,
        # The image has an environment of its own.
        base={"TMPDIR": IMAGE_TMP} if order.image else {**own, **account},
        master_port=_meeting_port(order),
        master_addr=master_addr,
    )
    if order.venv:
        # The node checks whether it is conda's, as the job's account.
        env = with_venv(env, order.venv, is_conda=False)
    return env


def _meeting_port(order: LaunchOrder) -> int | None:
    """A free port of another machine cannot be found from here; a port derived from the attempt's id is rarely
    taken."""
    if not order.is_distributed and len(order.instances) < 2:
        return None
    return FIRST_PORT + zlib.crc32(order.attempt_id.encode()) % PORTS


def run_as(submitter: Submitter | None) -> Account | None:
    """The account that submits the job; None for the server's own account."""
    if submitter is None or submitter.account.uid == os.geteuid():
        return None
    return Account(uid=submitter.account.uid, gid=submitter.account.gid, groups=submitter.account.groups)
