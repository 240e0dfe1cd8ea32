"""The environment of a job's process: pure.

The server's own environment may hold secrets, so a job gets a short list of it and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.control.ports import Instance, LaunchOrder
from corral.core.model import job_of_attempt

#: What a program needs to find its tools; nothing here is secret.
INHERITED = ("PATH", "HOME", "LANG", "USER", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
MASTER_ADDR = "127.0.0.1"


def base_environment(server: Mapping[str, str], *, python_dir: str) -> dict[str, str]:
    """`python_dir` ends the PATH: on a machine whose only `python` is the server's own, a job finds that one."""
    base = {name: server[name] for name in INHERITED if name in server}
    path = base.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    base["PATH"] = path if python_dir in path.split(":") else f"{path}:{python_dir}"
    return base


def job_environment(
    order: LaunchOrder, instance: Instance, *, base: Mapping[str, str], master_port: int | None
) -> dict[str, str]:
    """What the user asked for, under what corral knows: a job cannot pretend to hold other GPUs."""
    env = {**base, **order.env, **instance.env}
    # Indexes are NVML's, which count by bus; without this CUDA would count by speed.
    env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    env["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in instance.gpu_indexes)
    env["CORRAL_JOB_ID"] = order.job_id
    env["CORRAL_ATTEMPT_ID"] = order.attempt_id
    env["CORRAL_ATTEMPT"] = str(job_of_attempt(order.attempt_id)[1])
    env["CORRAL_NODE"] = instance.node
    env["CORRAL_RANK"] = str(instance.rank)
    if master_port is not None:
        env |= _gang_environment(len(order.instances), instance, master_port)
    return env


def _gang_environment(nodes: int, instance: Instance, master_port: int) -> dict[str, str]:
    processes = max(1, len(instance.gpu_indexes))
    rendezvous = {
        "MASTER_ADDR": MASTER_ADDR,
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
