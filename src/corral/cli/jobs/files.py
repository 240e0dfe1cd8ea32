"""`corral files`: list and save the files that a job wrote into its output directory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.habits.habit_group import HabitGroup, own_verb
from corral.cli.jobs.jobs import JobArgument
from corral.cli.terminal import formats
from corral.cli.terminal.failures import Refused
from corral.cli.terminal.terminal import Terminal, command

if TYPE_CHECKING:
    from tarfile import TarInfo

Progress = Callable[[int, "int | None"], None]


class _ListsByDefault(HabitGroup):
    """`corral files JOB` means `corral files ls JOB`; job names are longer than the names of the commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and own_verb(args[0], self.commands) is None:
            args = ["ls", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ListsByDefault, help="List and save the files that a job wrote into CORRAL_OUTPUT_DIR.", no_args_is_help=True
)


@command(app, "ls", examples=["corral files ls j-12", "corral files ls resnet plots", "corral files ls j-12 -o json"])
def ls(
    terminal: Terminal,
    job: JobArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A directory; default: the whole output directory.")] = "",
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N files.")] = 1000,
) -> None:
    """List the files of a running or ended job; `corral files JOB` does the same."""
    now = terminal.now()
    with terminal.client() as client:
        found = list(client.files.list(job, path, limit=limit))
    terminal.table(
        ("NAME~", "KIND", "SIZE>", "CHANGED>"),
        found,
        lambda view: (
            view["name"] + "/" * view["is_dir"],
            view["kind"],
            formats.size(view["size_bytes"]) if view["kind"] == "file" else formats.NOTHING,
            formats.ago(view["modified_at"], now),
        ),
        empty="No files. A job writes them into the directory that CORRAL_OUTPUT_DIR names.",
    )


@command(
    app,
    "get",
    examples=["corral files get j-12 model.json", "corral files get resnet plots -d results", "corral files get j-12"],
)
def get(
    terminal: Terminal,
    job: JobArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or a directory; default: everything.")] = "",
    directory: Annotated[
        Path, typer.Option("-d", "--directory", metavar="DIR", help="Where to save it; default: the current directory.")
    ] = Path(),
) -> None:
    """Save a file or a whole directory of a job on this machine."""
    name = Path(path).name or f"{job}-outputs"
    target = directory / name
    with terminal.client() as client, saving(directory) as draft:
        with progress_of(terminal, name) as progress:
            fetched = client.files.fetch(job, path, draft, progress)
        if fetched.is_archive:
            _unpack(draft, target)
        else:
            keep(draft, target)
    saved = {"job": job, "path": path, "file": str(target), "size_bytes": fetched.size_bytes}
    terminal.answer(saved, f"Saved {target} ({formats.size(fetched.size_bytes)} received)")


@contextmanager
def saving(directory: Path) -> Iterator[IO[bytes]]:
    """A temporary file in the target directory, so that no incomplete file ever has the final name."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".corral-", dir=directory, delete=False) as draft:
            try:
                yield draft.file
            finally:
                Path(draft.name).unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"cannot write in {directory}: {error.strerror}") from error


def keep(draft: IO[bytes], target: Path) -> None:
    """Rename the temporary file to its final name."""
    draft.flush()
    # The mode of other new files: the temporary file was readable by its owner only.
    os.chmod(draft.fileno(), 0o666 & ~_mask())
    os.replace(draft.name, target)


def _unpack(draft: IO[bytes], target: Path) -> None:
    """Extract only regular files, directories and links that stay inside, so that nothing is written elsewhere.

    Python's own filter is missing in 3.11.0 to 3.11.3, and so in Debian 12.
    """
    import tarfile

    draft.seek(0)
    target.mkdir(exist_ok=True)
    try:
        with tarfile.open(fileobj=draft, mode="r:gz") as archive:
            members = [member for member in archive.getmembers() if _is_harmless(member)]
            # Links last, so that no file is written through a link.
            for member in sorted(members, key=lambda member: member.issym()):
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                archive.extract(member, target, set_attrs=not member.isdir())
    except (tarfile.TarError, EOFError) as error:
        raise Refused(f"cannot unpack the received archive: {error}") from error


def _is_harmless(member: TarInfo) -> bool:
    parts = member.name.split("/")
    if member.name.startswith("/") or ".." in parts:
        return False
    if not member.issym():
        return member.isfile() or member.isdir()
    # `..` is accepted only at the beginning: after a directory that is itself a link it could lead anywhere.
    steps = member.linkname.split("/")
    up = next((index for index, step in enumerate(steps) if step != ".."), len(steps))
    return not member.linkname.startswith("/") and up < len(parts) and ".." not in steps[up:]


@contextmanager
def progress_of(terminal: Terminal, name: str) -> Iterator[Progress]:
    """A progress bar at a terminal; nothing for programs."""
    if terminal.as_json or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from corral.cli.terminal import tables

    columns = (TextColumn(name, markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=tables.terminal_console(to_stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
