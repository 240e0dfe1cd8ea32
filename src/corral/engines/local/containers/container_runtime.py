"""Finds the container runtime of this machine: Podman, or else a Docker whose daemon runs. Removes containers that were
left behind.

To find the runtime only programs and files are inspected and nothing is started, so that a server without images never
waits for a runtime. `container_orders` makes the command lines.
"""

from __future__ import annotations

import logging
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from corral.engines.local.amd_gpus import find_amd_gpus
from corral.engines.local.cgroups import CGROUP_MOUNT, CgroupSupport
from corral.engines.local.containers.container_orders import (
    ATTEMPT_LABEL,
    CDI_KIND,
    ENGINE_LABEL,
    ContainerRuntime,
    RuntimeKind,
)

logger = logging.getLogger(__name__)

CDI_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
DOCKER_SOCKET = "/var/run/docker.sock"
_INHERITED = ("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST", "CONTAINERS_REGISTRIES_CONF",
              "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
              "SSL_CERT_FILE", "SSL_CERT_DIR")  # fmt: skip
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: The capability's bit in /proc/self/status: a process with it may raise limits.
_CAP_SYS_RESOURCE = 24
_SWEEP_SECONDS = 60.0


def find_runtime(cgroups: CgroupSupport, environ: Mapping[str, str]) -> ContainerRuntime | None:
    """Podman first: it needs no daemon, and its containers are children of their supervisor."""
    env = {name: environ[name] for name in _INHERITED if name in environ}
    env.setdefault("PATH", _DEFAULT_PATH)
    devices = cdi_devices(CDI_DIRECTORIES)
    amd_devices = {found.gpu.id: found.device for found in find_amd_gpus()}
    podman = shutil.which("podman", path=env["PATH"])
    is_root = os.geteuid() == 0
    if podman:
        takes_group = is_root and bool(group_below_mount(cgroups, "x"))
        return ContainerRuntime(
            kind=RuntimeKind.PODMAN,
            program=podman,
            env=env,
            global_options=("--cgroup-manager", "cgroupfs") if takes_group else (),
            run_options=(*_oci_runtime(cgroups, env["PATH"]), *(_attainable_limits() if is_root else ())),
            cdi_devices=devices,
            amd_devices=amd_devices,
            takes_group=takes_group,
            is_rootless=not is_root,
            detail=f"Podman ({podman})",
        )
    docker = shutil.which("docker", path=env["PATH"])
    if docker and ("DOCKER_HOST" in env or os.path.exists(DOCKER_SOCKET)):
        return ContainerRuntime(
            kind=RuntimeKind.DOCKER,
            program=docker,
            env=env,
            cdi_devices=devices,
            amd_devices=amd_devices,
            detail=f"Docker ({docker})",
        )
    return None


def group_below_mount(support: CgroupSupport, name: str) -> str:
    """The path of a group as runtimes name it, or "" if the controllers have different paths."""
    bases = {support.memory, support.cpu, support.pids}
    if "" in bases:
        return ""
    if support.version == 2:
        (base,) = bases
        return os.path.join("/", os.path.relpath(base, CGROUP_MOUNT), name)
    below = {os.path.relpath(base, CGROUP_MOUNT).partition("/")[2] for base in bases}
    return os.path.join("/", *below, name) if len(below) == 1 else ""


def _oci_runtime(cgroups: CgroupSupport, path: str) -> tuple[str, ...]:
    """crun refuses hosts with control groups of both versions; runc works there."""
    return ("--runtime", "runc") if cgroups.version == 1 and shutil.which("runc", path=f"{path}:/usr/sbin") else ()


def _attainable_limits() -> tuple[str, ...]:
    """Podman requests more open files and processes than a root without all capabilities may set."""
    if _has_capability(_CAP_SYS_RESOURCE):
        return ()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = min(resource.getrlimit(resource.RLIMIT_NPROC)[1], _pid_max())
    return ("--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}")


def _has_capability(bit: int) -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as source:
        masks = [int(line.split()[1], 16) for line in source if line.startswith("CapEff:")]
    return bool(masks and masks[0] >> bit & 1)


def _pid_max() -> int:
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as source:
        return int(source.read())


def cdi_devices(directories: Sequence[str]) -> frozenset[str]:
    """The names that the machine's CDI specifications give to NVIDIA's GPUs; a file that cannot be read names none."""
    names: set[str] = set()
    for path in sorted(path for directory in directories for path in Path(directory).glob("*")):
        if path.suffix not in (".json", ".yaml", ".yml"):
            continue
        try:
            spec = yaml.safe_load(path.read_text(encoding="utf-8"))  # JSON is YAML too
            if spec["kind"] == CDI_KIND:
                names.update(str(device["name"]) for device in spec["devices"])
        except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
            logger.warning("%s is no usable CDI specification: %s", path, error)
    return frozenset(names)


def remove_leftovers(runtime: ContainerRuntime, engine: str, is_live: Callable[[str], bool]) -> list[str]:
    """Remove containers whose attempt has no supervisor any more; returns their names. May take long."""
    listing = [
        *(runtime.program, *runtime.global_options, "ps", "--all"),
        *("--filter", f"label={ENGINE_LABEL}={engine}"),
        *("--format", f'{{{{.Names}}}} {{{{index .Labels "{ATTEMPT_LABEL}"}}}}'),
    ]
    if runtime.kind is RuntimeKind.DOCKER:
        listing[-1] = f'{{{{.Names}}}} {{{{.Label "{ATTEMPT_LABEL}"}}}}'
    found = [line.split() for line in _output(runtime, listing).splitlines()]
    dead = [fields[0] for fields in found if len(fields) == 2 and not is_live(fields[1])]
    for name in dead:
        remove_container(runtime, name)
    return dead


def remove_container(runtime: ContainerRuntime, name: str) -> None:
    at_once = ["--time", "0"] if runtime.kind is RuntimeKind.PODMAN else []
    _output(runtime, [runtime.program, *runtime.global_options, "rm", "--force", "--volumes", *at_once, name])


def layer_of(runtime: ContainerRuntime, name: str) -> str:
    """The directory of the host with what a container has changed in its image; "" if the runtime names none."""
    program = [runtime.program, *runtime.global_options]
    path = _output(runtime, [*program, "container", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", name])
    return path if os.path.isabs(path := path.strip()) else ""


def in_background(work: Callable[[], object]) -> None:
    """Run a function that may take long and whose result is not needed."""
    threading.Thread(target=work, name="containers", daemon=True).start()


def _output(runtime: ContainerRuntime, command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(runtime.env),
            cwd="/",
            timeout=_SWEEP_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.warning("%s does not answer: %s", runtime.program, error)
        return ""
    if done.returncode != 0:
        logger.info("%s: %s", " ".join(command[:4]), done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")
