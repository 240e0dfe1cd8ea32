"""Converts an attempt's storage orders into messages for its supervisors: the directory of each mount. Pure.

Volumes and the node's own disk have a directory that is known from the beginning. Storage that must be fetched or
mounted first gets its directory from a provider, in a process of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import corral
from corral.control.ports import LaunchRefused, StorageKind, StorageOrder
from corral.engines.attempts.instance_messages import PreparerSpec, StorageSpec
from corral.engines.storage.job_mounts import variable_part

#: The variables of the server's environment that providers need: how the network is reached.
_INHERITED = ("PATH", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
              "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE")  # fmt: skip
_GIB = 1 << 30
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoragePlaces:
    """The directories in which a node keeps the storage of its jobs."""

    #: the root of the volumes' driver
    volumes: str
    #: directories on the node's own disk, each removed with its attempt
    scratch: str
    #: where buckets are mounted
    objects: str
    #: the cache of buckets, and its largest size
    cache: str
    cache_bytes: int = 50 * _GIB
    #: checked-out versions of datasets, and their largest size
    datasets: str = ""
    dataset_bytes: int = 100 * _GIB
    #: how long an unused bucket stays mounted
    linger_seconds: float = 10.0
    #: a bucket's files are fetched before the start even where they could be mounted
    without_fuse: bool = False

    @classmethod
    def below(cls, root: str) -> StoragePlaces:
        names = ("volumes", "scratch", "objects", "cache", "datasets")
        return cls(**{name: os.path.join(root, name) for name in names})  # type: ignore[arg-type]

    def roots(self) -> list[str]:
        """All directories that hold storage of several users."""
        return [root for root in (self.volumes, self.scratch, self.objects, self.cache, self.datasets) if root]

    def scratch_of(self, engine: str, attempt_id: str, rank: int) -> str:
        """The directory of one instance on the node's own disk. Several engines may share the disk."""
        return os.path.join(self.scratch, f"{engine}-{attempt_id}-{rank}")


def storage_specs(
    orders: Sequence[StorageOrder], places: StoragePlaces, *, scratch: str, suffix: str = ""
) -> list[StorageSpec]:
    """`scratch` is the instance's own directory, `suffix` distinguishes its links from those of other instances. Raises
    LaunchRefused."""
    _check(orders)
    links = _links(orders)
    return [
        StorageSpec(
            kind=order.kind.value,
            name=order.name,
            path=os.path.normpath(order.path),
            read_only=order.read_only,
            source=_source(order, places, os.path.join(scratch, str(index))),
            link=f"{links[index]}{suffix if order.kind is StorageKind.LOCAL else ''}",
            id=order.id,
            version=order.version,
            size_bytes=order.size_bytes,
            prefetch=order.prefetch,
            access=dict(order.access),
        )
        for index, order in enumerate(orders)
    ]


def _check(orders: Sequence[StorageOrder]) -> None:
    taken: dict[str, str] = {}
    for order in orders:
        path = os.path.normpath(order.path)
        if not os.path.isabs(path) or path == "/" or "\0" in path:
            raise LaunchRefused(f"{order.name} cannot be mounted at {order.path!r}: not an absolute path below /")
        if path in taken:
            raise LaunchRefused(f"{taken[path]} and {order.name} cannot both be mounted at {path}")
        taken[path] = order.name


def _source(order: StorageOrder, places: StoragePlaces, scratch: str) -> str:
    if order.kind is StorageKind.VOLUME:
        return os.path.join(places.volumes, order.id, "data")
    return scratch if order.kind is StorageKind.LOCAL else ""


def _links(orders: Sequence[StorageOrder]) -> list[str]:
    """Short names, each once: `owner/data` becomes `data`, and a second one `data-2`."""
    names: list[str] = []
    for order in orders:
        stem = _NOT_IN_A_NAME.sub("-", order.name.rpartition("/")[2]).strip(".") or "storage"
        name, number = stem, 1
        while variable_part(name) in map(variable_part, names):
            number += 1
            name = f"{stem}-{number}"
        names.append(name)
    return names


def preparer_spec(
    specs: Sequence[StorageSpec], places: StoragePlaces, environ: Mapping[str, str]
) -> PreparerSpec | None:
    """The process that prepares storage which is not ready yet; None if all storage is ready."""
    if all(spec["source"] for spec in specs):
        return None
    package_root = str(Path(corral.__file__).resolve().parent.parent)
    code = (
        f"import sys; sys.path.insert(0, {package_root!r}); "
        "from corral.engines.storage.provider_process import main; main()"
    )
    return PreparerSpec(
        command=[sys.executable, "-P", "-c", code],
        env={name: environ[name] for name in _INHERITED if name in environ},
        places={
            "objects": places.objects,
            "cache": places.cache,
            "cache_bytes": places.cache_bytes,
            "datasets": places.datasets,
            "dataset_bytes": places.dataset_bytes,
            "linger_seconds": places.linger_seconds,
            "without_fuse": places.without_fuse,
        },
    )
