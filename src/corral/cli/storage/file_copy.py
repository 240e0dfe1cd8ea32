"""`corral cp` and `corral sync`: copy files between this machine, volumes and buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.storage.transfer_progress import (
    ChecksumOption,
    DryRunOption,
    JobsOption,
    Sides,
    carry_out,
    check_ends,
)
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.storage.places import Place
    from corral.client.storage.transfers import Task

app = typer.Typer()


@command(
    app,
    "cp",
    section=Section.DAILY,
    examples=[
        "corral cp weights.pt data:/models/                 a file into a directory of the volume data",
        "corral cp -r images data:/                         a directory with its contents",
        "corral cp -r data:/runs/7 .                        back to this machine",
        "corral cp -r data:/images ann/shared:/images       from volume to volume, through this machine",
        "corral cp -r bucket:/raw data:/raw --jobs 16       a bucket is used like any other volume",
    ],
)
def cp(
    terminal: Terminal,
    places: Annotated[
        list[str],
        typer.Argument(metavar="SRC... DST", help="Paths of this machine, or VOLUME:/path, or OWNER/VOLUME:/path."),
    ],
    recursive: Annotated[bool, typer.Option("-r", "--recursive", help="Copy directories with their contents.")] = False,
    by_content: ChecksumOption = False,
    dry_run: DryRunOption = False,
    jobs: JobsOption = 8,
) -> None:
    """Copy files to a volume, from a volume, or between volumes. Every file is verified by its checksum, and appears
    only when it is complete. Files that exist with the same size and time are skipped, so running the same command
    again continues an interrupted copy."""
    from corral.client.http.retries import Persistence
    from corral.client.storage.places import parse_place

    if len(places) < 2:
        raise WrongUsage("DST is missing", hint="Such as: corral cp weights.pt data:/models/")
    *sources, target = [parse_place(text) for text in places]
    check_ends(sources, target)
    with terminal.client() as client:
        persistence = Persistence()
        sides = Sides(client, persistence)
        into = _is_directory(sides, target) or len(sources) > 1
        tasks = [
            _copy_task(sides, source, target, into=into, recursive=recursive, by_content=by_content)
            for source in sources
        ]
        carry_out(terminal, persistence, tasks, jobs=jobs, dry_run=dry_run)


@command(
    app,
    "sync",
    section=Section.DAILY,
    examples=[
        "corral sync images data:/images                    copy new and changed files",
        "corral sync images data:/images --delete           also delete files that are not here",
        "corral sync images data:/images --delete --dry-run show what that would do",
        "corral sync data:/results results                  from the volume",
        "corral sync data:/images bucket:/images --checksum compare contents, not times",
    ],
)
def sync(
    terminal: Terminal,
    source: Annotated[str, typer.Argument(metavar="SRC", help="A directory of this machine, or VOLUME:/path.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="The directory that becomes equal to SRC.")],
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete files in DST that are not in SRC, after everything else succeeded.")
    ] = False,
    by_content: ChecksumOption = False,
    dry_run: DryRunOption = False,
    jobs: JobsOption = 8,
) -> None:
    """Make a directory equal to another: only new and changed files are copied. A file is unchanged if size and time
    are equal; in a bucket, where files have the time of their upload, if size is equal and it is not older."""
    from corral.client.http.retries import Persistence
    from corral.client.storage.places import parse_place
    from corral.client.storage.transfers import prepared

    origin, place = parse_place(source), parse_place(target)
    check_ends([origin], place)
    with terminal.client() as client:
        persistence = Persistence()
        sides = Sides(client, persistence)
        (source_side, source_path), (target_side, target_path) = sides.side(origin), sides.side(place)
        found, there = source_side.entry(source_path), target_side.entry(target_path)
        if found is None or found.kind != "dir":
            why = "does not exist" if found is None else "is a file"
            raise WrongUsage(f"{source} {why}: sync copies directories", hint="For a file use corral cp.")
        if there is not None and there.kind != "dir":
            raise WrongUsage(f"{target} is a file: sync copies directories", hint="For a file use corral cp.")
        task = prepared(source_side, source_path, target_side, target_path, delete=delete, by_content=by_content)
        carry_out(terminal, persistence, [task], jobs=jobs, dry_run=dry_run)


def _is_directory(sides: Sides, place: Place) -> bool:
    if place.is_directory_by_name:
        return True
    side, path = sides.side(place)
    found = side.entry(path)
    return found is not None and found.kind == "dir"


def _copy_task(sides: Sides, source: Place, target: Place, *, into: bool, recursive: bool, by_content: bool) -> Task:
    """`into`: the target is a directory, and the source keeps its name in it."""
    from corral.client.storage.transfers import joined, prepared, prepared_file

    source_side, source_path = sides.side(source)
    target_side, target_path = sides.side(target)
    found = source_side.entry(source_path)
    if found is None:
        raise WrongUsage(f"there is no {source_side.label(source_path)}")
    if into and source.name not in ("", ".", ".."):
        target_path = joined(target_path, source.name)
    if found.kind == "dir":
        if not recursive:
            raise WrongUsage(f"{source_side.label(source_path)} is a directory", hint="Copy all of it with -r.")
        return prepared(source_side, source_path, target_side, target_path, delete=False, by_content=by_content)
    return prepared_file(source_side, source_path, target_side, target_path, by_content=by_content)
