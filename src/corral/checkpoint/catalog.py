"""The checkpoints of a directory, newest first, and which of them can be trusted.

Both the platform and the program use these functions: they show the time of the last checkpoint, choose the one that
the next attempt resumes from, and restore it. Listing reads manifests and lengths only; `verify` reads every byte. A
gang that saves in parts has one checkpoint when the parts of all its ranks are there.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from corral.checkpoint.layout import MANIFEST, Damaged, Manifest, Name, check, check_steps, last_of, parse_name

#: The most that one listing reads: a program can put any number of directories there, with manifests of any length.
_LISTED_PARTS = 20_000
_LISTED_MANIFEST_BYTES = 128 << 20


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that a program can resume from, or what is left of one."""

    #: The directory; with several parts, that of the lowest rank. This is what `CORRAL_RESUME_FROM` names.
    path: Path
    #: Steps done: where to continue.
    step: int
    #: Seconds since the epoch when its saving began.
    at: float
    bytes: int
    attempt: int
    #: How it is loaded; empty if that is unknown.
    kind: str
    #: The directories of all ranks, by rank.
    parts: tuple[Path, ...]
    #: How many ranks saved it.
    world: int
    #: A later save has a larger number.
    sequence: int
    #: Why it cannot be used.
    problem: str | None = None

    @property
    def good(self) -> bool:
        return self.problem is None


@dataclass(frozen=True)
class _Part:
    path: Path
    name: Name
    manifest: Manifest | None
    problem: str | None


def list_checkpoints(directory: str | os.PathLike[str]) -> list[Checkpoint]:
    """Newest first, including those with a problem. Quick: lengths are compared, digests are not."""
    gangs: dict[tuple[int, int, int], list[_Part]] = {}
    found: list[Checkpoint] = []
    for part in _parts(Path(directory)):
        if part.manifest is None or part.manifest.world == 1:
            found.append(_single(part))
        else:
            # Ranks number their saves independently; the parts of one step of one attempt belong together.
            key = (part.manifest.attempt, part.manifest.step, part.manifest.world)
            gangs.setdefault(key, []).append(part)
    for parts in gangs.values():
        found.extend(_gang(parts))
    return sorted(
        found, key=lambda checkpoint: (checkpoint.sequence, checkpoint.step, checkpoint.path.name), reverse=True
    )


def latest_good(directory: str | os.PathLike[str], *, thorough: bool = False) -> Checkpoint | None:
    """The newest that can be resumed from; `thorough` reads it and skips checkpoints that were changed since they were
    saved."""
    return last_of(latest_good_steps(directory, thorough=thorough))


def latest_good_steps(
    directory: str | os.PathLike[str], *, thorough: bool = False
) -> Generator[None, None, Checkpoint | None]:
    """The same as a generator, which yields often while it reads."""
    for checkpoint in list_checkpoints(directory):
        if not checkpoint.good:
            continue
        if not thorough or (yield from inspect_steps(checkpoint)).good:
            return checkpoint
    return None


def verify(path: str | os.PathLike[str]) -> Checkpoint:
    """Read every byte of the checkpoint at `path`, its parts of all ranks included. Raises `Damaged`."""
    checkpoint = find(path)
    if checkpoint is None:
        raise Damaged(Path(path), "there is no checkpoint")
    checkpoint = inspect(checkpoint)
    if checkpoint.problem is not None:
        raise Damaged(checkpoint.path, checkpoint.problem)
    return checkpoint


def find(path: str | os.PathLike[str]) -> Checkpoint | None:
    """The checkpoint that `path` is, or is a part of."""
    path = Path(os.path.abspath(path))
    for checkpoint in list_checkpoints(path.parent):
        if path in checkpoint.parts:
            return checkpoint
    return None


def inspect(checkpoint: Checkpoint) -> Checkpoint:
    """The same, with a problem if reading every byte finds one."""
    return last_of(inspect_steps(checkpoint))


def inspect_steps(checkpoint: Checkpoint) -> Generator[None, None, Checkpoint]:
    if not checkpoint.good:
        return checkpoint
    try:
        for part in checkpoint.parts:
            yield from check_steps(part, thorough=True)
    except Damaged as error:
        where = f"{error.path.name}: " if checkpoint.world > 1 else ""
        return replace(checkpoint, problem=where + error.reason)
    return checkpoint


def next_sequence(directory: Path) -> int:
    """Larger than every number in use, including damaged ones: a new save must never look older than its
    predecessor."""
    return max((name.sequence for name in map(parse_name, _names(directory)) if name), default=0) + 1


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _parts(directory: Path) -> Iterable[_Part]:
    directory = Path(os.path.abspath(directory))
    named = [(name, text) for text in _names(directory) if (name := parse_name(text)) is not None]
    budget = _LISTED_MANIFEST_BYTES
    # The newest first: if a directory holds more than a program ever saves, the oldest are skipped.
    for name, text in sorted(named, key=lambda each: each[0].sequence, reverse=True)[:_LISTED_PARTS]:
        path = directory / text
        if path.is_symlink() or not path.is_dir():
            continue
        budget -= _length(path / MANIFEST)
        if budget < 0:
            return
        try:
            manifest = check(path)
            problem = None
            if (manifest.step, manifest.rank, manifest.world) != (name.step, name.rank, name.world):
                problem = "its name and its manifest disagree"
        except Damaged as error:
            manifest, problem = None, error.reason
        if manifest is None and not path.exists():
            continue  # removed while we listed: a newer one exists
        yield _Part(path=path, name=name, manifest=manifest if problem is None else None, problem=problem)


def _length(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _single(part: _Part) -> Checkpoint:
    manifest = part.manifest
    return Checkpoint(
        path=part.path,
        step=part.name.step,
        at=manifest.at if manifest else 0.0,
        bytes=manifest.bytes if manifest else 0,
        attempt=manifest.attempt if manifest else 0,
        kind=manifest.kind if manifest else "",
        parts=(part.path,),
        world=part.name.world,
        sequence=part.name.sequence,
        problem=part.problem,
    )


def _gang(parts: list[_Part]) -> Iterable[Checkpoint]:
    """One checkpoint from the newest part of every rank; a rank's earlier parts of the same step are superseded."""
    newest: dict[int, _Part] = {}
    for part in sorted(parts, key=lambda part: part.name.sequence):
        earlier = newest.get(part.name.rank)
        if earlier is not None:
            yield replace(_single(earlier), problem="the same step was saved again")
        newest[part.name.rank] = part
    whole = [newest[rank] for rank in sorted(newest)]
    manifests = [part.manifest for part in whole if part.manifest is not None]
    world = whole[0].name.world
    missing = [str(rank) for rank in range(world) if rank not in newest]
    some = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
    yield replace(
        _single(whole[0]),
        # Work after the time of the first part is not in the whole.
        at=min(manifest.at for manifest in manifests),
        bytes=sum(manifest.bytes for manifest in manifests),
        parts=tuple(part.path for part in whole),
        sequence=max(part.name.sequence for part in whole),
        problem=f"the parts of {len(missing)} of {world} ranks are missing: {some}" if missing else None,
    )
