"""`corral target`: the places that store datasets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal.changes import check_changes, delete_named
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import DatasetTargetView

app = typer.Typer(help="Manage the targets that store datasets.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="From `corral target ls`.")]
TokenOption = Annotated[
    bool, typer.Option("--token-stdin", help="Read the token for the repository from a line of stdin.")
]


@command(app, "ls", examples=["corral target ls"])
def ls(terminal: Terminal) -> None:
    """List the targets."""
    with terminal.client() as client:
        found = list(client.dataset_targets.list())
    terminal.table(
        ("NAME", "HISTORY~", "FILES~", "DATASETS"),
        found,
        lambda view: (view["name"], _history(view), _storage(view), str(view["datasets"])),
        empty="No targets.",
    )


@command(app, "show", examples=["corral target show default"])
def show(terminal: Terminal, name: NameArgument) -> None:
    """Show one target."""
    with terminal.client() as client:
        view = client.dataset_targets.get(name)
    lines = [
        ("Target", view["name"]),
        ("History", _history(view)),
        ("Token", "stored" if view["metadata"]["has_token"] else ""),
        ("Files", _storage(view)),
        ("Datasets", str(view["datasets"])),
        ("Created by", view["created_by"]),
    ]
    terminal.answer(view, "\n".join(f"{label + ':':<11} {value}" for label, value in lines if value))


@command(
    app,
    "create",
    examples=[
        "corral target create disk --directory /srv/datasets",
        "corral target create bucket --object-store minio --prefix datasets",
        'echo "$TOKEN" | corral target create forge --git https://git.example.org/sets.git --token-stdin '
        "--directory /srv/sets",
    ],
)
def create(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, '.', '_' and '-'.")],
    directory: Annotated[str | None, typer.Option(metavar="PATH", help="Store files in this directory.")] = None,
    object_store: Annotated[
        str | None, typer.Option(metavar="NAME", help="Store files in this bucket: `corral object-store ls`.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="The prefix in the bucket.")] = "",
    git: Annotated[str | None, typer.Option(metavar="URL", help="Store the history in this Git repository.")] = None,
    branch: Annotated[str, typer.Option(help="The branch of the repository.")] = "main",
    token_stdin: TokenOption = False,
) -> None:
    """Create a target: a directory or bucket for files; Git or corral's own store for their history (operators)."""
    if (directory is None) == (object_store is None):
        raise WrongUsage("say where the files are stored: --directory or --object-store")
    if token_stdin and git is None:
        raise WrongUsage("--token-stdin is for --git")
    metadata: dict[str, Any] = {"kind": "store"}
    if git is not None:
        metadata = {"kind": "git", "url": git, "branch": branch, "token": _token() if token_stdin else ""}
    storage: dict[str, Any] = {"kind": "directory", "path": directory}
    if object_store is not None:
        storage = {"kind": "object", "object_store": object_store, "prefix": prefix}
    with terminal.client() as client:
        view = client.dataset_targets.create({"name": name, "metadata": metadata, "storage": storage})
    terminal.answer(view, f"Created target {view['name']}: history in {_history(view)}, files in {_storage(view)}")


@command(
    app,
    "edit",
    examples=[
        "corral target edit forge --git https://git.example.org/team/sets.git",
        'echo "$TOKEN" | corral target edit forge --token-stdin',
    ],
)
def edit(
    terminal: Terminal,
    name: NameArgument,
    git: Annotated[str | None, typer.Option(metavar="URL", help="The new address of the same repository.")] = None,
    token_stdin: TokenOption = False,
) -> None:
    """Change the address of a repository, or its token (operators)."""
    changes: dict[str, Any] = {}
    if git is not None:
        changes["url"] = git
    if token_stdin:
        changes["token"] = _token()
    check_changes(changes, "target edit")
    with terminal.client() as client:
        view = client.dataset_targets.edit(name, changes)
    terminal.answer(view, f"Target {view['name']}: history in {_history(view)}, files in {_storage(view)}")


@command(app, "test", examples=["corral target test forge"])
def test(terminal: Terminal, name: NameArgument) -> None:
    """Check whether a target can be reached (operators)."""
    with terminal.client() as client:
        found = client.dataset_targets.test(name)
    if not found["ok"]:
        raise Refused(f"target {name}: {found['detail']}")
    terminal.answer(found, f"Target {name} works: {found['detail']}")


@command(app, "rm", examples=["corral target rm disk"])
def rm(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a target without datasets (operators). Files that are stored there stay."""
    delete_named(terminal, "target", name, lambda client: client.dataset_targets.delete(name), yes=yes)


def _history(view: DatasetTargetView) -> str:
    metadata = view["metadata"]
    return f"{metadata['url']} ({metadata['branch']})" if metadata["kind"] == "git" else "corral's store"


def _storage(view: DatasetTargetView) -> str:
    storage = view["storage"]
    if storage["kind"] == "directory":
        return str(storage["path"] or "a directory")
    prefix = f"/{storage['prefix']}" if storage["prefix"] else ""
    return f"object store {storage['object_store']}{prefix}"


def _token() -> str:
    """Read from stdin, never an argument: other users of the machine could read that."""
    given = sys.stdin.readline().strip()
    if not given:
        raise WrongUsage("the token is empty: pipe it in", hint='echo "$TOKEN" | corral target … --token-stdin')
    return given
