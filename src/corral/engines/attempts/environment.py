"""The environment of a job's process. Pure.

The server's own environment may hold secrets, so a job gets only a short list of its variables.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.control.ports import Instance, LaunchOrder
from corral.core.fleet.gpu_ids import is_amd_gpu
from corral.core.model import WHOLE, job_of_attempt
from corral.engines.attempts.accounts import Account

#: Variables that a program needs to find its tools; none of them is secret.
INHERITED = ("PATH", "HOME", "LANG", "USER", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
MASTER_ADDR = "127.0.0.1"
#: Every process of an instance has this variable: the run directory, which is unique among all engines of a machine.
RUN_DIR_VARIABLE = "CORRAL_RUN_DIR"
#: The id of the installation: the same for all jobs of one store, on every cluster.
INSTALLATION_VARIABLE = "CORRAL_INSTALLATION"
#: Variables that name directories of the job: the job's account owns these directories, its container mounts them.
JOB_DIRECTORIES = ("CORRAL_JOB_DIR", "CORRAL_CHECKPOINT_DIR", "CORRAL_OUTPUT_DIR")
#: Variables by which NVIDIA's and AMD's libraries show a program some of the GPUs.
CUDA_VARIABLE, HIP_VARIABLE, ROCR_VARIABLE = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
#: Whether MPS limits the program to its share of a GPU: `enforced` or `not enforced`.
SHARE_VARIABLE = "CORRAL_GPU_SHARE"
#: The prefix of the driver's ids of slices.
MIG_PREFIX = "MIG-"
#: The prefixes of the driver's ids; virtual GPUs have other ids.
REAL_PREFIXES = ("GPU-", MIG_PREFIX)


def base_environment(server: Mapping[str, str], *, python_dir: str) -> dict[str, str]:
    """`python_dir` is the last part of the PATH: on a machine whose only `python` is the server's own, jobs find that
    one."""
    base = {name: server[name] for name in INHERITED if name in server}
    path = base.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    # An empty part would mean the current directory.
    base["PATH"] = path if not python_dir or python_dir in path.split(":") else f"{path}:{python_dir}"
    return base


def account_environment(account: Account) -> dict[str, str]:
    """The variables that name the account, for a program that does not run as the server's own account."""
    return {"HOME": account.home or "/", "USER": account.name, "LOGNAME": account.name}


def job_environment(
    order: LaunchOrder,
    instance: Instance,
    *,
    base: Mapping[str, str],
    master_port: int | None,
    master_addr: str = MASTER_ADDR,
) -> dict[str, str]:
    """The variables that the user set, overridden by those that corral sets: a job cannot pretend to hold other
    GPUs."""
    env = {**base, **order.env, **order.secret_env, **instance.env}
    # Indexes are NVML's, in bus order; without this variable CUDA would order GPUs by speed.
    env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    env |= device_variables(instance)
    env["CORRAL_JOB_ID"] = order.job_id
    env["CORRAL_ATTEMPT_ID"] = order.attempt_id
    env["CORRAL_ATTEMPT"] = str(job_of_attempt(order.attempt_id)[1])
    env["CORRAL_NODE"] = instance.node
    env["CORRAL_RANK"] = str(instance.rank)
    if master_port is not None:
        env |= _gang_environment(len(order.instances), instance, master_addr, master_port)
    return env


def device_variables(instance: Instance) -> dict[str, str]:
    """The variables that show a program its GPUs only. HIP counts those that ROCR leaves visible, and obeys CUDA's
    variable too."""
    if any(map(is_amd_gpu, instance.gpu_ids)):
        places = ",".join(str(place) for place in range(len(instance.gpu_ids)))
        return {CUDA_VARIABLE: places, HIP_VARIABLE: places, ROCR_VARIABLE: ",".join(instance.gpu_ids)}
    shown = {CUDA_VARIABLE: visible_devices(instance)}
    # An empty variable hides all GPUs from CUDA and ROCR, but none from HIP.
    return shown if instance.gpu_ids else {**shown, ROCR_VARIABLE: ""}


def visible_devices(instance: Instance) -> str:
    """GPUs by index; slices by id, because CUDA knows no index for them."""
    if any(gpu.startswith(MIG_PREFIX) for gpu in instance.gpu_ids):
        return ",".join(instance.gpu_ids)
    return ",".join(str(index) for index in instance.gpu_indexes)


def is_share(instance: Instance) -> bool:
    """Whether the instance has a part of a real GPU."""
    return instance.gpu_milli < WHOLE and any(gpu.startswith(REAL_PREFIXES) for gpu in instance.gpu_ids)


def can_limit_share(instance: Instance) -> bool:
    """Whether MPS can limit the instance's share: it is one of an NVIDIA GPU."""
    return is_share(instance) and not any(map(is_amd_gpu, instance.gpu_ids))


def share_environment(instance: Instance, *, pipe_directory: str) -> dict[str, str]:
    """The variables of a share of a GPU: whether it is enforced, and, if MPS runs, those by which it limits the share.
    Empty for whole GPUs."""
    if not is_share(instance):
        return {}
    if not pipe_directory:
        return {SHARE_VARIABLE: "not enforced"}
    limited = {
        SHARE_VARIABLE: "enforced",
        "CUDA_MPS_PIPE_DIRECTORY": pipe_directory,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(max(1, instance.gpu_milli * 100 // WHOLE)),
    }
    if instance.gpu_memory_bytes:
        share = instance.gpu_memory_bytes * instance.gpu_milli // WHOLE
        # The only GPU that the program sees has the number 0.
        limited["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={share >> 20}M"
    return limited


def _gang_environment(nodes: int, instance: Instance, master_addr: str, master_port: int) -> dict[str, str]:
    processes = max(1, len(instance.gpu_indexes))
    rendezvous = {
        "MASTER_ADDR": master_addr,
        "MASTER_PORT": str(master_port),
        "NNODES": str(nodes),
        "NODE_RANK": str(instance.rank),
    }
    return {
        **rendezvous,
        **{f"PET_{name}": value for name, value in rendezvous.items()},
        "GPUS_PER_NODE": str(len(instance.gpu_indexes)),
        "WORLD_SIZE": str(nodes * processes),
        "PET_NPROC_PER_NODE": str(processes),
    }


def job_directories(order: LaunchOrder) -> list[str]:
    """The job's directories, outermost first."""
    found = {order.env[name] for name in JOB_DIRECTORIES if order.env.get(name)}
    return sorted(found, key=len)
