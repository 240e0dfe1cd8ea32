"""The directories of the node that a container sees: opened with the permissions of the job's account, mounted by
descriptor.

A runtime that is root would mount whatever a path means at that moment. So it is given directories that only the
supervisor can change. Podman runs in a mount namespace in which the job's directories are mounted there; Docker, whose
daemon is a separate process, is given descriptors of this process. Without root the runtime can reach no more than the
job's account, and gets links. It is forked from the spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import os

from corral.engines.attempts.instance_messages import ContainerMountSpec, ContainerSpec, InstanceSpec
from corral.engines.attempts.processes import acting_as
from corral.engines.local.rundir import TMP, WORK
from corral.engines.storage import mount_namespace
from corral.engines.storage.job_mounts import PRIVATE, place_in
from corral.files import describe
from corral.files.descriptors import open_directory_path

_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class CannotMount(Exception):
    """A directory that the container would see cannot be mounted; the message says which and why."""


def enter_container_mounts(spec: InstanceSpec, container: ContainerSpec) -> list[str]:
    """Called in the process that becomes the runtime; returns the command to run. Raises CannotMount."""
    places = [place_in(spec["rank_dir"], index) for index in range(len(container["mounts"]))]
    if os.geteuid() != 0:
        for place, mount in zip(places, container["mounts"], strict=True):
            os.symlink(_source(mount, spec), place)
        return container["run"]
    if not container["is_child"]:
        opened = {place: _open(mount, spec) for place, mount in zip(places, container["mounts"], strict=True)}
        return [_with_descriptor(word, opened) for word in container["run"]]
    try:
        mount_namespace.enter()
        mount_namespace.mount_memory(os.path.join(spec["rank_dir"], PRIVATE))
    except OSError as error:
        raise CannotMount(f"what the container sees cannot be mounted: {describe(error)}") from error
    for place, mount in zip(places, container["mounts"], strict=True):
        _mount(mount, place, spec)
    return container["run"]


def _mount(mount: ContainerMountSpec, place: str, spec: InstanceSpec) -> None:
    source = _open(mount, spec)
    try:
        os.mkdir(place, 0o755)
        mount_namespace.bind(source, place, read_only=mount["read_only"], with_inner=mount["storage"] < 0)
    except OSError as error:
        raise CannotMount(f"{_source(mount, spec)} cannot be mounted in the container: {error.strerror}") from error
    finally:
        os.close(source)


def _with_descriptor(word: str, opened: dict[str, int]) -> str:
    """The daemon resolves a descriptor of this process, whatever the path means by now."""
    place, colon, rest = word.partition(":")
    if place not in opened or not colon:
        return word
    os.set_inheritable(opened[place], True)
    return f"/proc/{os.getpid()}/fd/{opened[place]}:{rest}"


def _source(mount: ContainerMountSpec, spec: InstanceSpec) -> str:
    return mount["source"] if mount["storage"] < 0 else spec["storage"][mount["storage"]]["source"]


def _open(mount: ContainerMountSpec, spec: InstanceSpec) -> int:
    path = _source(mount, spec)
    is_servers = mount["is_servers"] or mount["storage"] >= 0
    try:
        if is_servers:
            return os.open(path, _LOOK)
        with acting_as(spec["owner"]):
            # Links in the job's own directories are not followed. Links on the path to a working directory are resolved
            # first, with the account's permissions; when it is opened, none may be left.
            descriptor = open_directory_path(_own_path(path, spec) or os.path.realpath(path))
            # Naming a directory needs no permission on it; passing through it does.
            os.close(os.open(".", _LOOK, dir_fd=descriptor))
    except OSError as error:
        account = f" for the account {spec['owner']['name']}" if spec["owner"] is not None else ""
        raise CannotMount(f"{path} cannot be mounted in the container: {error.strerror}{account}") from error
    found = os.readlink(f"/proc/self/fd/{descriptor}")
    is_own = any(_is_below(found, root) for root in _own_roots(spec).values())
    if not is_own and any(_is_below(found, os.path.realpath(root)) for root in spec["closed"]):
        os.close(descriptor)
        raise CannotMount(f"{path} cannot be mounted in the container: it is not the job's own")
    return descriptor


def _own_roots(spec: InstanceSpec) -> dict[str, str]:
    """The outermost of the job's own directories, by their names and by their real paths: their parent directories are
    the server's, and they themselves cannot be links."""
    owned = [path for path in spec["owned"] if not any(_is_below(path, o) for o in spec["owned"] if o != path)]
    roots = (*owned, os.path.join(spec["rank_dir"], WORK), os.path.join(spec["rank_dir"], TMP))
    return {root: os.path.join(os.path.realpath(os.path.dirname(root)), os.path.basename(root)) for root in roots}


def _own_path(path: str, spec: InstanceSpec) -> str | None:
    """The path below one of the job's own directories, after resolving links that an operator made in front of it."""
    wanted = os.path.normpath(path)
    for root, real in _own_roots(spec).items():
        if _is_below(wanted, root):
            return real + wanted[len(root) :]
    return None


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")
