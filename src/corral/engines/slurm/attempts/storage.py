"""The storage of attempts on a Slurm cluster, as bash commands for the nodes. Pure.

Volumes are on the file system that all nodes share; versions of datasets are checked out there, and buckets are
fetched, before the attempt is submitted. Nothing is really mounted, because jobs of Slurm have no permission to:
programs find each directory by its variable or by a link in the job's directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from shlex import quote

from corral.control.ports import LaunchRefused, StorageKind, StorageOrder
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.storage.job_mounts import LINKS, mount_environment
from corral.engines.storage.storage_specs import StoragePlaces, storage_specs

#: Stands for the instance's directory on its node's disk, whose path only the node knows.
_OWN = "@own@"


def slurm_specs(
    orders: Sequence[StorageOrder], places: StoragePlaces | None, rank: int, user: str
) -> list[StorageSpec]:
    """Raises LaunchRefused for storage that this cluster cannot mount."""
    for order in orders:
        if order.kind is StorageKind.VOLUME and order.read_only and order.owner not in ("", user):
            raise LaunchRefused(
                f"volume {order.name} is {order.owner}'s, and on a Slurm cluster nothing keeps a job from writing to "
                f"what it may only read: {order.owner} shares it to be written to, or commits it as a dataset."
            )
        if order.kind is StorageKind.OBJECT and not order.read_only:
            raise LaunchRefused(
                f"bucket {order.name} cannot be written to from a Slurm cluster, where its files are fetched before "
                f"the start: mount it read-only ({order.name}:{order.path}:ro), and write into a volume."
            )
    if not orders:
        return []
    if places is None:
        raise LaunchRefused("this cluster has no storage that jobs could mount")
    return storage_specs(orders, places, scratch=_OWN, suffix=f"-{rank}" if rank else "")


def take_long(specs: Sequence[StorageSpec]) -> bool:
    """Whether anything must be fetched or checked out first."""
    return any(not spec["source"] for spec in specs)


def with_sources(specs: Sequence[StorageSpec], sources: Mapping[int, str]) -> list[StorageSpec]:
    """The specs with the directories that were prepared, by the index of the mount."""
    return [{**spec, "source": spec["source"] or sources.get(place, "")} for place, spec in enumerate(specs)]


def storage_lines(specs: Sequence[StorageSpec], env: Mapping[str, str]) -> list[str]:
    """Commands that prepare all storage before the program begins. They set `own` and may call `refuse`."""
    if not specs:
        return []
    lines = []
    if any(spec["kind"] == StorageKind.LOCAL for spec in specs):
        lines.append(
            'own=$(mktemp -d -- "${TMPDIR:-/tmp}/corral-$attempt-$rank.XXXXXXXX") || '
            'refuse "local storage cannot be made in ${TMPDIR:-/tmp} of $SLURMD_NODENAME"'
        )
    for spec in specs:
        if spec["kind"] == StorageKind.LOCAL:
            lines.append(f'mkdir -- {node_word(spec["source"])} || refuse "local storage cannot be made in $own"')
        else:
            message = quote(f"{spec['kind']} {spec['name']} ({spec['id']}) has no directory on ")
            lines.append(f'[ -d {node_word(spec["source"])} ] || refuse {message}"$SLURMD_NODENAME"')
    if job_dir := env.get("CORRAL_JOB_DIR"):
        links = os.path.join(job_dir, LINKS)
        lines.append(f"mkdir -p -- {quote(links)} || refuse {quote(links + ' cannot be made')}")
        for spec in specs:
            path = os.path.join(links, spec["link"])
            lines.append(
                f"ln -sfnT -- {node_word(spec['source'])} {quote(path)} || refuse {quote(path + ' cannot be made')}"
            )
    return lines


def storage_exports(specs: Sequence[StorageSpec], prefix: str = "") -> list[str]:
    """The variables that name the mounts, as on every engine. With a prefix before their names they are for an image,
    in which each mount is at its path."""
    seen = {spec["path"]: spec["path"] if prefix else spec["source"] for spec in specs}
    return [f"export {prefix}{name}={node_word(value)}" for name, value in mount_environment(specs, seen).items()]


def node_word(text: str) -> str:
    """One quoted bash word, in which the node inserts the path of its own directory."""
    return '"$own"'.join(quote(part) if part else "" for part in text.split(_OWN)) or "''"
