"""The common parts of `corral cp` and `corral sync`: sources and targets, the progress bar, and the summary."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import REFUSED, WrongUsage
from corral.cli.terminal.terminal import Terminal
from corral.core.counts import counted
from corral.core.visible_text import visible_line

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.http.retries import Persistence
    from corral.client.storage.places import Place, Side
    from corral.client.storage.transfers import Summary, Task
    from corral.client.views import VolumeView

#: Failed files that are named; more are only counted.
_NAMED = 20
INTERRUPTED = 130

JobsOption = Annotated[
    int,
    typer.Option(
        "-j",
        "--jobs",
        min=1,
        max=64,
        metavar="N",
        help="The number of files, or parts of files, that are transferred in parallel.",
    ),
]
ChecksumOption = Annotated[
    bool, typer.Option("--checksum", help="Compare contents where sizes are equal, not the times of files.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


class Sides:
    """The two ends of transfers; every volume is looked up once."""

    def __init__(self, client: Client, persistence: Persistence) -> None:
        self._client = client
        self._persistence = persistence
        self._volumes: dict[str, VolumeView] = {}

    def side(self, place: Place) -> tuple[Side, str]:
        """The side and the path on it. A local path is its own root; a path in a volume is relative to the volume."""
        from corral.client.storage.places import LocalSide, VolumeSide

        if place.volume is None:
            return LocalSide(Path(place.path or ".").expanduser()), ""
        if place.volume not in self._volumes:
            self._volumes[place.volume] = self._client.volume_files.find(place.volume)
        found = self._volumes[place.volume]
        return VolumeSide(self._client.volume_files, found, "", self._persistence), _checked(place.path)


def _checked(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise WrongUsage(f"a path in a volume must not contain ..: {path}")
    return "/".join(parts)


def check_ends(sources: list[Place], target: Place) -> None:
    for place in (*sources, target):
        if place.volume is not None and re.fullmatch(r"j-\d+", place.volume):
            hint = f"`corral files get {place.volume} PATH` saves files of a job."
            raise WrongUsage(f"{place.volume} is a job and no volume", hint=hint)
    if target.volume is None and any(source.volume is None for source in sources):
        raise WrongUsage(
            "source or target must be a volume, such as data:/images",
            hint="Between two directories of this machine use cp.",
        )


def carry_out(terminal: Terminal, persistence: Persistence, tasks: list[Task], *, jobs: int, dry_run: bool) -> None:
    """Show the plan, or execute it and print the summary."""
    from corral.client.storage.transfers import Transfer

    if dry_run:
        _show_plans(terminal, tasks)
        return
    with _progress(terminal) as progress:
        try:
            summary = Transfer(persistence, progress, jobs).run(tasks)
        except KeyboardInterrupt:
            terminal.note("Interrupted. Transferred files are kept: run the same command again to continue.")
            raise typer.Exit(INTERRUPTED) from None
    _show_summary(terminal, summary)


def _show_plans(terminal: Terminal, tasks: list[Task]) -> None:
    """One line for every action, as rsync does."""
    from corral.client.storage.transfers import joined

    lines: list[tuple[str, str]] = []
    sizes = 0
    for task in tasks:
        label = task.target_side.label
        plan = task.plan
        doing: list[tuple[str, Any]] = [
            ("delete", plan.clear),
            ("mkdir", plan.directories),
            ("copy", plan.copy),
            ("delete", plan.delete),
            ("refuse", plan.refused),
        ]
        lines += [(verb, label(joined(task.target, path))) for verb, paths in doing for path in paths]
        sizes += sum(task.tree.entries[path].size for path in plan.copy)
    copies = sum(len(task.plan.copy) for task in tasks)
    skipped = sum(len(task.plan.unchanged) for task in tasks)
    if terminal.as_json:
        actions = [{"action": verb, "path": path} for verb, path in lines]
        terminal.json({"dry_run": True, "files": copies, "bytes": sizes, "skipped": skipped, "actions": actions})
        return
    for verb, path in lines:
        terminal.say(f"{verb:7} {visible_line(path)}")
    terminal.say(f"Would copy {formats.count(copies, 'file')} ({formats.size(sizes)}); {skipped} unchanged.")


def _show_summary(terminal: Terminal, summary: Summary) -> None:
    if terminal.as_json:
        terminal.json(
            {
                "files": summary.files,
                "bytes": summary.bytes,
                "resumed_bytes": summary.resumed_bytes,
                "skipped": summary.skipped,
                "deleted": summary.deleted,
                "left_out": summary.left_out,
                "failed": [{"path": path, "detail": why} for path, why in sorted(summary.failed.items())],
                "seconds": round(summary.seconds, 3),
            }
        )
    else:
        terminal.say(_summary_text(summary))
        if summary.left_out:
            terminal.note(f"Not copied, because they are links or special files: {_some(summary.left_out)}")
        if summary.failed:
            terminal.note(f"Error: {formats.count(len(summary.failed), 'file')} failed:")
            for path, why in sorted(summary.failed.items())[:_NAMED]:
                terminal.note(f"  {path}: {why}")
            if len(summary.failed) > _NAMED:
                terminal.note(f"  … and {len(summary.failed) - _NAMED} more")
            terminal.note("Hint: run the same command again; transferred files are not sent again.")
    if summary.failed:
        raise typer.Exit(REFUSED)


def _summary_text(summary: Summary) -> str:
    rate = summary.bytes / summary.seconds if summary.seconds else 0.0
    text = f"Copied {formats.count(summary.files, 'file')} ({formats.size(summary.bytes)}"
    text += f" in {formats.duration(summary.seconds)}, {formats.size(int(rate))}/s)"
    if summary.resumed_bytes:
        text += f"; {formats.size(summary.resumed_bytes)} were transferred before"
    if summary.skipped:
        text += f"; {summary.skipped} unchanged"
    if summary.deleted:
        text += f"; {summary.deleted} deleted"
    return text


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(paths[:5]) + more


class _Quiet:
    """No progress bar, for programs."""

    def planned(self, files: int, size_bytes: int) -> None:
        pass

    def carried(self, size_bytes: int) -> None:
        pass

    def file_done(self) -> None:
        pass


class _Bar:
    """A progress bar with bytes, rate, remaining time and files."""

    def __init__(self, update: Callable[..., None]) -> None:
        self._update = update
        self._lock = threading.Lock()
        self._files = self._done = self._bytes = 0

    def planned(self, files: int, size_bytes: int) -> None:
        self._files = files
        self._update(total=size_bytes, files=f"0/{counted(files, 'file')}")

    def carried(self, size_bytes: int) -> None:
        with self._lock:
            self._bytes += size_bytes
            self._update(completed=self._bytes)

    def file_done(self) -> None:
        with self._lock:
            self._done += 1
            self._update(files=f"{self._done}/{counted(self._files, 'file')}")


@contextmanager
def _progress(terminal: Terminal) -> Iterator[_Quiet | _Bar]:
    if terminal.as_json or not sys.stderr.isatty():
        yield _Quiet()
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from corral.cli.terminal import tables

    columns = (
        TextColumn("{task.fields[files]}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=tables.terminal_console(to_stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, files="")
        yield _Bar(lambda **fields: bar.update(task, **fields))
