"""`corral volume files` and `corral volume rm-file`: list and delete files of a volume.

The module completes the group of `volumes`, so the table of commands names it."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.cli.storage.volumes import VolumeArgument, app
from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command


@command(
    app,
    "files",
    examples=["corral volume files data", "corral volume files data images -r", "corral volume files data -o json"],
)
def files(
    terminal: Terminal,
    volume: VolumeArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A directory; default: the whole volume.")] = "",
    recursive: Annotated[bool, typer.Option("-r", "--recursive", help="Everything below it.")] = False,
) -> None:
    """List the files of a volume; `corral cp` copies them."""
    now = terminal.now()
    with terminal.client() as client:
        found = client.volume_files.find(volume)
        listed = list(client.volume_files.list(found["id"], path.strip("/"), recursive=recursive))
    terminal.table(
        ("PATH~", "KIND", "SIZE>", "CHANGED>"),
        listed,
        lambda view: (
            view["path"] + "/" * (view["kind"] == "dir"),
            view["kind"],
            formats.size(view["size"]) if view["kind"] == "file" else formats.NOTHING,
            formats.ago(view["modified_at"], now),
        ),
        empty=f"No files. Copy some: corral cp FILE {volume}:/",
    )


@command(app, "rm-file", examples=["corral volume rm-file data old.txt", "corral volume rm-file data runs/7 -r --yes"])
def rm_file(
    terminal: Terminal,
    volume: VolumeArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or a directory in it.")],
    recursive: Annotated[bool, typer.Option("-r", "--recursive", help="A directory with its contents.")] = False,
    yes: YesOption = False,
) -> None:
    """Delete a file of a volume, or an empty directory."""
    target = path.strip("/")
    if not target:
        raise WrongUsage("PATH: it names no file", hint="To delete the whole volume: corral volume rm")
    with terminal.client() as client:
        found = client.volume_files.find(volume)
        if recursive:
            terminal.confirm(f"Delete {found['name']}:/{target} with its contents?", assume_yes=yes)
        client.volume_files.delete(found["id"], target, recursive=recursive)
    terminal.answer({"volume": found["id"], "path": target, "deleted": True}, f"Deleted {found['name']}:/{target}")
