"""Versions of datasets on a node: checked out once, verified, shared by all jobs that mount them.

    <root>/<version>.<n>/       the files of one version, read-only
    <root>/<version>.<n>.json   sizes and times of the files at the checkout; its own time is the last use
    <root>/uses/<version>.<n>/  one file for each attempt that mounts them: the path of its claim or its mark

An existing checkout is compared with its record, by size and times of every file: every change of a file shows there. A
checkout that was changed is removed, as soon as no attempt uses it, and the version is checked out again under another
number. If the cache is too large, checkouts that no attempt uses are removed, the least recently used first.

Jobs see a checkout through a read-only mount. Where nothing can be mounted, the files have no write permission, and a
server that is root gives them to an account that runs nothing, so that jobs of root without its special permissions
cannot change them either (`corral.engines.storage.job_mounts`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.core.quantities import format_bytes
from corral.datasets.content.blobs import remove_tree, replace_file
from corral.datasets.content.content_places import open_blobs
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import DatasetError
from corral.datasets.history.trees import walk
from corral.datasets.work.checkout import make_read_only, staging, write_tree
from corral.datasets.work.progress import Progress
from corral.engines.attempts.claims import ClaimState, claim_state
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.storage.provider import CannotProvide, Surroundings
from corral.objects.access import NotReachable

_USES, _LOCKS, _INDEX = "uses", "locks", "index"
#: A number that no distribution gives to an account.
_UNUSED_ACCOUNT = 65533
_THREADS = min(8, os.cpu_count() or 1)


class DatasetProvider:
    """Implements `corral.engines.storage.provider.StorageProvider`."""

    def provide(self, spec: StorageSpec, around: Surroundings) -> str:
        root = Path(around.places["datasets"])
        _prepare(root)
        try:
            with _locked(root, spec["version"]):
                place = self._ready(root, spec, around)
                _use(root, place, around)
        except (DatasetError, NotReachable) as error:
            raise CannotProvide(str(error)) from error
        except OSError as error:
            raise CannotProvide(f"{error.filename or root}: {error.strerror}") from error
        with _locked(root, "eviction"):
            _evict(root, int(around.places["dataset_bytes"]))
        return str(place)

    def _ready(self, root: Path, spec: StorageSpec, around: Surroundings) -> Path:
        """A checkout of the version that is unchanged: an existing one, or a new one."""
        found = sorted(path for path in root.glob(f"{spec['version']}.*") if path.suffix != ".json")
        for place in found:
            about = _about(place)
            if about is not None and about["stamps"] == _stamps(place):
                return place
            around.say(f"{place.name} was changed since it was checked out: it is removed and checked out again")
            if _is_used(root, place):
                _mark_changed(place)
            else:
                _remove(root, place)
        numbered = (root / f"{spec['version']}.{number}" for number in range(1, len(found) + 2))
        place = next(place for place in numbered if not place.exists())
        _check_out(place, spec, around)
        return place


def _prepare(root: Path) -> None:
    """Accounts of jobs may pass to a version whose id they know, and list nothing."""
    root.mkdir(parents=True, exist_ok=True)
    os.chmod(root, 0o711)
    for name in (_INDEX, _LOCKS, _USES):
        (root / name).mkdir(mode=0o700, exist_ok=True)


def _check_out(place: Path, spec: StorageSpec, around: Surroundings) -> None:
    """Every piece is verified before it is written. If one is damaged, the error names it and no checkout is left."""
    access = spec["access"]
    pieces = PieceStore(open_blobs(json.loads(access["storage"])), cache=place.parent / _INDEX)
    entries = list(walk(pieces, bytes.fromhex(access["tree"])))
    size = sum(item.entry.size for item in entries if item.entry.kind == "file")
    _make_room(place.parent, size)

    def report(progress: Progress) -> None:
        done, total = format_bytes(progress.bytes_done), format_bytes(progress.bytes_total)
        around.progress(f"checking out {access['name']}: {done} of {total}")

    mask = os.umask(0o022)
    try:
        with staging(place) as folder:
            write_tree(entries, folder, pieces, version=spec["version"], threads=_THREADS, on_progress=report)
            make_read_only(folder)
            _give_away(folder)
            about = {"bytes": size, "stamps": _stamps(folder)}
            # Before the rename: a checkout under its final name has its record. Renaming changes no file times.
            replace_file(_about_path(place), json.dumps(about).encode())
            os.rename(folder, place)
    finally:
        os.umask(mask)


def _give_away(folder: Path) -> None:
    if os.geteuid() != 0:
        return
    # Shared file systems may refuse it; there, root has no special permissions either.
    with contextlib.suppress(PermissionError):
        for where, folders, names in os.walk(folder):
            for name in [*folders, *names]:
                os.lchown(os.path.join(where, name), _UNUSED_ACCOUNT, _UNUSED_ACCOUNT)
        os.lchown(folder, _UNUSED_ACCOUNT, _UNUSED_ACCOUNT)


def _make_room(root: Path, size: int) -> None:
    free = shutil.disk_usage(root).free
    if free < size:
        with _locked(root, "eviction"):
            _evict(root, 0)
        free = shutil.disk_usage(root).free
    if free < size:
        raise CannotProvide(f"the version has {format_bytes(size)}, and {root} has room for {format_bytes(free)}")


# ------------------------------------------------------------------------------------------------ as it was


def _about_path(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


def _about(place: Path) -> dict[str, Any] | None:
    try:
        about: dict[str, Any] = json.loads(_about_path(place).read_bytes())
    except (OSError, ValueError):
        return None
    return about


def _mark_changed(place: Path) -> None:
    """The checkout matches no record any more, and is removed when no attempt uses it."""
    about = _about(place) or {}
    replace_file(_about_path(place), json.dumps({"bytes": about.get("bytes", 0), "stamps": None}).encode())


def _stamps(place: Path) -> dict[str, list[int]]:
    """Mode, size and change time of everything in a checkout."""
    found: dict[str, list[int]] = {}
    for where, folders, names in os.walk(place):
        for name in [*folders, *names]:
            path = os.path.join(where, name)
            status = os.lstat(path)
            is_folder = name in folders and not os.path.islink(path)
            changed = [] if is_folder else [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            found[os.fsencode(os.path.relpath(path, place)).hex()] = [status.st_mode, *changed]
    return found


# ------------------------------------------------------------------------------------------------ uses


def _use(root: Path, place: Path, around: Surroundings) -> None:
    uses = root / _USES / place.name
    uses.mkdir(parents=True, exist_ok=True)
    name = f"{around.attempt_id}-{os.path.basename(around.rank_dir)}"
    replace_file(uses / name, os.fsencode(around.rank_dir))
    os.utime(_about_path(place))


def _is_used(root: Path, place: Path) -> bool:
    """Whether an attempt that mounts it may still run. Records of ended attempts are removed."""
    uses = root / _USES / place.name
    used = False
    for use in sorted(uses.iterdir()) if uses.is_dir() else ():
        if _is_in_use(os.fsdecode(use.read_bytes())):
            used = True
        else:
            use.unlink(missing_ok=True)
    return used


def _is_in_use(sign: str) -> bool:
    """Whether the claim is locked, which it is while the attempt runs, or the mark exists, which it does while the
    attempt is known."""
    return os.path.isfile(sign) or claim_state(sign) is ClaimState.HELD


@dataclass(frozen=True, slots=True)
class _Kept:
    place: Path
    size: int
    asked_at: float
    is_changed: bool


def _evict(root: Path, most_bytes: int) -> None:
    """Removes only unused checkouts, so the cache may be larger than `most_bytes` when this returns."""
    kept = []
    for path in root.glob("*.json"):
        place = path.with_suffix("")
        about = _about(place) or {}
        kept.append(_Kept(place, int(about.get("bytes", 0)), path.stat().st_mtime, about.get("stamps") is None))
    total = sum(checkout.size for checkout in kept)
    if total <= most_bytes and not any(checkout.is_changed for checkout in kept):
        return
    for checkout in sorted(kept, key=lambda checkout: (not checkout.is_changed, checkout.asked_at)):
        if total <= most_bytes and not checkout.is_changed:
            break
        with contextlib.suppress(BlockingIOError), _locked(root, checkout.place.name.rpartition(".")[0], wait=False):
            if not _is_used(root, checkout.place):
                _remove(root, checkout.place)
                total -= checkout.size
    for rest in root.glob(".gone-*"):
        remove_tree(rest)
    for half in root.glob(".*.checkout"):
        # The next process would reuse what a killed one left, but not at the price of other versions' space.
        with contextlib.suppress(BlockingIOError), _locked(root, half.name[1:].partition(".")[0], wait=False):
            remove_tree(half)


def _remove(root: Path, place: Path) -> None:
    # Renamed first: a checkout that is half removed must not be found.
    gone = place.with_name(f".gone-{place.name}")
    if place.exists():
        os.rename(place, gone)
    _about_path(place).unlink(missing_ok=True)
    remove_tree(gone)
    shutil.rmtree(root / _USES / place.name, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path, name: str, *, wait: bool = True) -> Iterator[None]:
    """One process at a time; the kernel releases the lock when a process is killed."""
    descriptor = os.open(root / _LOCKS / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
