"""How an instance with an image is run: the command lines of Podman or Docker, and the files that they read. Pure.

The container holds the job only: its program is the first process, its files are the image and the mounts, its user is
the job's account without privileges, and its network is the host's, so that gangs connect as they do without
containers. The environment and the registry login are passed in files that only the server's account can read, never on
a command line.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from corral.control.ports import Instance, LaunchRefused, RegistryLogin
from corral.core.fleet.gpu_ids import is_amd_gpu
from corral.engines.attempts.accounts import Account
from corral.engines.attempts.environment import REAL_PREFIXES
from corral.engines.attempts.instance_messages import ContainerMountSpec, ContainerSpec
from corral.engines.local.amd_gpus import KFD_DEVICE
from corral.engines.local.rundir import AUTH, ENVIRONMENT
from corral.engines.storage.job_mounts import place_in

#: Labels of every container of corral: the engine, and the attempt.
ENGINE_LABEL = "corral.engine"
ATTEMPT_LABEL = "corral.attempt"
#: In the container, where it is a directory of its own.
CONTAINER_TMP = "/tmp"
CDI_KIND = "nvidia.com/gpu"
#: Docker's own registry is known under two names.
_DOCKER_HUB = ("docker.io", "index.docker.io")
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_STATE = "{{.State.OOMKilled}}|{{.State.StartedAt}}|{{.State.Error}}"


class RuntimeKind(StrEnum):
    PODMAN = "podman"
    DOCKER = "docker"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerRuntime:
    """The program that runs containers on this machine."""

    kind: RuntimeKind
    program: str
    #: the environment of the runtime's own processes
    env: Mapping[str, str] = field(default_factory=dict)
    #: before the command: how Podman keeps control groups
    global_options: tuple[str, ...] = ()
    #: options of every run: another OCI runtime, limits that the machine cannot raise
    run_options: tuple[str, ...] = ()
    #: the names of GPUs in the machine's CDI specification; empty without one
    cdi_devices: frozenset[str] = frozenset()
    #: the device files of AMD's GPUs, by the GPU's id
    amd_devices: Mapping[str, str] = field(default_factory=dict)
    #: containers can be put below a control group of corral's
    takes_group: bool = False
    #: the server's account is not root's: the container must map it to itself
    is_rootless: bool = False
    #: for `doctor`: version, or why it cannot be used
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerMount:
    """A directory of the node that a container sees; see `ContainerMountSpec`."""

    source: str
    target: str
    read_only: bool = False
    is_servers: bool = False
    storage: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerOrder:
    """The properties of one container."""

    engine: str
    attempt_id: str
    instance: Instance
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    login: RegistryLogin | None
    #: the same path in the container and outside
    workdir: str
    #: becomes the container's /tmp
    tmp: str
    rank_dir: str
    #: where the node stores which images were pulled with a login
    rights: str
    mounts: tuple[ContainerMount, ...]
    account: Account
    memory_bytes: int = 0
    cpu_milli: int = 0
    max_processes: int = 0
    #: the control group that limits it, below the mount point; "" lets the runtime limit it
    group: str = ""


def container_spec(runtime: ContainerRuntime, order: ContainerOrder) -> ContainerSpec:
    """Raises LaunchRefused if this machine can never run it."""
    _check_environment(order.env)
    program = [runtime.program, *runtime.global_options]
    name = container_name(order.engine, order.attempt_id, order.instance.rank)
    env_file = os.path.join(order.rank_dir, ENVIRONMENT)
    auth_file = os.path.join(order.rank_dir, AUTH, "config.json")
    # Without a time Podman would first send SIGTERM and wait for ten seconds.
    at_once = ["--time", "0"] if runtime.kind is RuntimeKind.PODMAN else []
    run = [*program, "run", *run_options(runtime, order, name, env_file)]
    return ContainerSpec(
        image=order.image,
        name=name,
        exists=[*program, "image", "inspect", "--format", "{{.Id}}", order.image],
        pull=pull_command(runtime, order.image, auth_file if order.login else ""),
        run=[*run, order.image, *order.command],
        image_at=len(run),
        rights=order.rights,
        inspect=[*program, "container", "inspect", "--format", _STATE, name],
        terminate=[*program, "kill", "--signal", "TERM", name],
        remove=[*program, "rm", "--force", "--volumes", *at_once, name],
        env=dict(runtime.env),
        env_file=env_file,
        auth=auth_text(order.login) if order.login else "",
        auth_file=auth_file,
        mounts=[
            ContainerMountSpec(
                source=mount.source, read_only=mount.read_only, is_servers=mount.is_servers, storage=mount.storage
            )
            for mount in _mounts(order)
        ],
        is_child=runtime.kind is RuntimeKind.PODMAN,
    )


def container_name(engine: str, attempt_id: str, rank: int) -> str:
    """Several engines may share a machine, and their attempts may have the same ids."""
    return f"corral-{engine}-{attempt_id}-{rank}"


def pull_command(runtime: ContainerRuntime, image: str, auth_file: str) -> list[str]:
    if runtime.kind is RuntimeKind.PODMAN:
        login = ["--authfile", auth_file] if auth_file else []
        # Named with a transport, so that no address can mean a file of the node.
        return [runtime.program, *runtime.global_options, "pull", "--quiet", *login, f"docker://{image}"]
    login = ["--config", os.path.dirname(auth_file)] if auth_file else []
    return [runtime.program, *login, "pull", "--quiet", image]


def run_options(runtime: ContainerRuntime, order: ContainerOrder, name: str, env_file: str) -> list[str]:
    return [
        *("--name", name),
        *("--label", f"{ENGINE_LABEL}={order.engine}", "--label", f"{ATTEMPT_LABEL}={order.attempt_id}"),
        *("--pull", "never"),
        *("--network", "host"),
        *("--log-driver", "none"),
        *runtime.run_options,
        *_limits(order),
        *_user(runtime, order.account),
        *_gpus(runtime, order.instance),
        *_volumes(order),
        *("--workdir", order.workdir),
        *("--env-file", env_file),
        # The command is the job's, whatever the image's entry point is.
        *("--entrypoint", ""),
    ]


def _limits(order: ContainerOrder) -> list[str]:
    if order.group:
        # The control group limits the processes; the runtime's own default limit must not.
        return ["--cgroup-parent", order.group, "--cgroups", "no-conmon", "--pids-limit", "-1"]
    options = []
    if order.memory_bytes:
        # The same limit on memory and swap together: a job over its memory ends instead of becoming very slow.
        options += ["--memory", str(order.memory_bytes), "--memory-swap", str(order.memory_bytes)]
    if order.cpu_milli:
        options += ["--cpus", f"{order.cpu_milli / 1000:g}"]
    return [*options, "--pids-limit", str(order.max_processes or -1)]


def _user(runtime: ContainerRuntime, account: Account) -> list[str]:
    options = ["--user", f"{account.uid}:{account.gid}", "--security-opt", "no-new-privileges"]
    if runtime.is_rootless:
        # Files that it writes belong to the account outside the container too.
        return [*options, "--userns", "keep-id"]
    if account.uid != 0:
        options += ["--cap-drop", "ALL"]
        for group in account.groups:
            options += ["--group-add", str(group)] if group != account.gid else []
    return options


def _gpus(runtime: ContainerRuntime, instance: Instance) -> list[str]:
    """Virtual GPUs need no device in the container."""
    gpus = [gpu for gpu in instance.gpu_ids if is_real(gpu)]
    if not gpus:
        return []
    if any(map(is_amd_gpu, gpus)):
        return _amd_devices(runtime, gpus)
    if runtime.cdi_devices:
        devices = [_cdi_device(runtime, gpu, instance) for gpu in gpus]
        return [option for device in devices for option in ("--device", f"{CDI_KIND}={device}")]
    if runtime.kind is RuntimeKind.DOCKER:
        return ["--gpus", f'"device={",".join(gpus)}"']
    raise LaunchRefused(
        "containers get no GPUs on this node: Podman needs a CDI specification of them. An operator generates one with "
        "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    )


def _amd_devices(runtime: ContainerRuntime, gpus: Sequence[str]) -> list[str]:
    """AMD's GPUs are device files, with the permissions that they have on the node."""
    for gpu in gpus:
        if gpu not in runtime.amd_devices:
            raise LaunchRefused(f"GPU {gpu} has no device file on this node: its driver does not list the GPU any more")
    devices = [KFD_DEVICE, *(runtime.amd_devices[gpu] for gpu in gpus)]
    return [option for device in devices for option in ("--device", device)]


def _cdi_device(runtime: ContainerRuntime, gpu: str, instance: Instance) -> str:
    """Older specifications name GPUs by their index only."""
    index = str(dict(zip(instance.gpu_ids, instance.gpu_indexes, strict=False)).get(gpu, ""))
    for name in (gpu, index):
        if name in runtime.cdi_devices:
            return name
    raise LaunchRefused(
        f"GPU {gpu} is not in this node's CDI specification, which seems to be older than the GPU's present "
        "partitioning: an operator generates it again with nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    )


def is_real(gpu_id: str) -> bool:
    """Real GPUs and slices have the driver's ids."""
    return gpu_id.startswith(REAL_PREFIXES)


def _volumes(order: ContainerOrder) -> list[str]:
    """Each mount is a directory in the run directory, which only the server can change."""
    options = []
    for index, mount in enumerate(_mounts(order)):
        place = place_in(order.rank_dir, index)
        for path in (place, mount.target):
            if ":" in path or "," in path:
                raise LaunchRefused(f"{path}: a directory with ':' or ',' in its name cannot be mounted in a container")
        options += ["--volume", f"{place}:{mount.target}{':ro' if mount.read_only else ''}"]
    return options


def _mounts(order: ContainerOrder) -> list[ContainerMount]:
    """The mounts of the container. Of two with the same path in the container the later one counts."""
    mounts = (ContainerMount(source=order.tmp, target=CONTAINER_TMP), *order.mounts)
    return list({mount.target: mount for mount in mounts}.values())


def _check_environment(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if "\n" in value or "\r" in value:
            raise LaunchRefused(
                f"the environment variable {name} has several lines, which a container cannot be given: put it in a "
                "file and name the file"
            )


def auth_text(login: RegistryLogin) -> str:
    """Docker's config.json, which Podman reads as well."""
    token = base64.b64encode(f"{login.username}:{login.secret}".encode()).decode()
    keys = [login.registry, _DOCKER_HUB_KEY] if login.registry in _DOCKER_HUB else [login.registry]
    return json.dumps({"auths": {key: {"auth": token} for key in keys}})
