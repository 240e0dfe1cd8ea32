"""Mounts as people write them: `data:/data:ro`, `ann/data:/in`, `local:10GiB:/scratch`, `dataset:mnist@v3:/mnist`.

Parses mount options and decides which paths are allowed. `mounts` resolves the volumes and datasets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from corral.control.errors import Invalid
from corral.control.records import MountKind, MountSpec, ShareMode
from corral.core.quantities import parse_bytes

MAX_MOUNTS = 32
MAX_PATH = 255
PREFETCH = "prefetch"
#: Where the system's own files are: a job could not run without what is there.
SYSTEM_PATHS = frozenset({"/", "/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/tmp", "/usr", "/var"})
#: Nothing can be mounted below these either.
KERNEL_PATHS = ("/dev", "/proc", "/run", "/sys")
_CONTROL = re.compile(r"[\x00-\x1f\x7f:,]")
_KINDS = {"dataset": MountKind.DATASET, "local": MountKind.LOCAL}
HINT = "write SOURCE:/PATH[:ro|rw], such as data:/data:ro"


@dataclass(frozen=True, kw_only=True, slots=True)
class MountRequest:
    """A mount as it was asked for, and not looked up yet."""

    kind: MountKind
    #: for a volume its name, `owner/name` or id; for a dataset `NAME@VERSION`; for the node's own disk its size
    source: str
    path: str
    #: None means: as such things usually are
    mode: ShareMode | None = None
    prefetch: bool = False
    #: what it was for the job that this one is made from: names may mean something else by now
    known: MountSpec | None = None


def parse_mount(text: str) -> MountRequest:
    """Parses `SOURCE:/PATH[:OPTION[,OPTION]]`. A refusal names the valid form."""
    source, separator, rest = text.partition(":/")
    path, colon, options = rest.partition(":")
    if not separator or not source:
        raise Invalid(f"{text[:80]!r} is not a mount: {HINT}", field="mounts")
    given = options.split(",") if colon else []
    unknown = [option for option in given if option not in (*ShareMode, PREFETCH)]
    modes = {option for option in given if option != PREFETCH}
    if unknown or len(modes) > 1:
        raise Invalid(f"{options!r} is not how {source} can be mounted: ro or rw, and {PREFETCH}", field="mounts")
    return mount_request(source, f"/{path}", mode=next(iter(modes), None), prefetch=PREFETCH in given)


def mount_request(source: str, path: str, *, mode: str | None = None, prefetch: bool = False) -> MountRequest:
    head, colon, rest = source.partition(":")
    if colon and head not in _KINDS:
        raise Invalid(f"{source[:80]!r} is nothing that can be mounted: a volume, dataset:… or local:…", field="mounts")
    check_path(path)
    return MountRequest(
        kind=_KINDS[head] if colon else MountKind.VOLUME,
        source=rest if colon else source,
        path=path,
        mode=None if mode is None else ShareMode(mode),
        prefetch=prefetch,
    )


def requested_again(mounts: Sequence[MountSpec]) -> tuple[MountRequest, ...]:
    """The same mounts once more, for a job that is made from another one."""
    return tuple(
        MountRequest(
            kind=mount.kind,
            source=mount.source or str(mount.size_bytes),
            path=mount.path,
            mode=ShareMode.READ if mount.read_only else ShareMode.WRITE,
            prefetch=mount.prefetch,
            known=mount,
        )
        for mount in mounts
    )


def local_bytes(mount: MountRequest) -> int:
    try:
        size = parse_bytes(mount.source) if not mount.source.isdecimal() else parse_bytes(int(mount.source))
    except ValueError as error:
        raise Invalid(f"local:{mount.source}: {error}", field="mounts") from None
    if not size:
        raise Invalid("say how much of the node's disk: local:10GiB", field="mounts")
    return size


def check_path(path: str) -> None:
    parts = path.split("/")
    if not path.startswith("/") or len(path) > MAX_PATH or _CONTROL.search(path):
        raise Invalid(
            f"{path[:80]!r} is not a path to mount at: absolute, without ':' and ',', {MAX_PATH} characters at most",
            field="mounts",
        )
    if path != "/" and any(part in ("", ".", "..") for part in parts[1:]):
        raise Invalid(f"{path!r} is not a clean path: no '.', '..', '//' or '/' at its end", field="mounts")
    if path in SYSTEM_PATHS or f"/{parts[1]}" in KERNEL_PATHS:
        raise Invalid(f"nothing can be mounted at {path}: the system's own files are there", field="mounts")


def check_together(paths: Sequence[str]) -> None:
    """Refuses two mounts at one path, or one within another: the result would depend on their order."""
    if len(paths) > MAX_MOUNTS:
        raise Invalid(
            f"a job has {MAX_MOUNTS} mounts at most: asked {len(paths)}",
            field="mounts",
            asked=len(paths),
            limit=MAX_MOUNTS,
        )
    # With the slash at its end a path stands right before those that are below it.
    for one, other in pairwise(sorted(f"{path}/" for path in paths)):
        if one == other:
            raise Invalid(f"two mounts are at {one.rstrip('/')}", field="mounts")
        if other.startswith(one):
            raise Invalid(f"the mount at {other.rstrip('/')} is within that at {one.rstrip('/')}", field="mounts")
