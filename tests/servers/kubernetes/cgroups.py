"""A subtree of the kernel's control groups for each node, which the node sees as the whole tree."""

from __future__ import annotations

import contextlib
from pathlib import Path

PARENT = "corral-tests"


def mounts() -> list[tuple[str, Path, str]]:
    """The mounts of this machine: type, place and options, as `mount` takes them."""
    found = []
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found.append((kind, Path(place), ""))
        elif kind == "cgroup":
            own = [option for option in options.split(",") if option not in {"rw", "ro", "relatime"} | _FLAGS]
            named = any(option.startswith("name=") for option in own)
            found.append((kind, Path(place), ",".join(["none", *own] if named else own)))
    return found


_FLAGS = {"nosuid", "nodev", "noexec", "xattr", "clone_children", "noatime"}


def daemons(kind: str, place: Path) -> Path:
    """The group for processes outside of containers. In the second version, one with processes in it cannot pass
    controllers on to its children."""
    return place / "daemons" if kind == "cgroup2" else place


def create(name: str) -> list[Path]:
    """Creates the directories, one for each hierarchy."""
    remove(name)
    places = []
    for kind, root, _ in mounts():
        place = root / PARENT / name
        place.mkdir(parents=True)
        for group in (place.parent, place):
            if kind == "cgroup2":
                controllers = (group.parent / "cgroup.controllers").read_text().split()
                (group.parent / "cgroup.subtree_control").write_text(" ".join(f"+{word}" for word in controllers))
            elif (group / "cpuset.cpus").exists():
                for setting in ("cpuset.cpus", "cpuset.mems"):
                    (group / setting).write_text((group.parent / setting).read_text())
        places.append(place)
    return places


def remove(name: str) -> None:
    """No process may be left in them."""
    for _, root, _ in mounts():
        place = root / PARENT / name
        if not place.exists():
            continue
        for group in sorted((path for path in place.rglob("*") if path.is_dir()), key=_depth, reverse=True):
            group.rmdir()
        place.rmdir()
        with contextlib.suppress(OSError):  # another node's are in it
            place.parent.rmdir()


def _depth(path: Path) -> int:
    return len(path.parts)
