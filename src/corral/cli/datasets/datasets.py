"""`corral dataset`: commit, show and check out versions of files, and trace them to the jobs that used them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.datasets import dataset_texts
from corral.cli.jobs.files import progress_of
from corral.cli.terminal import formats
from corral.cli.terminal.arguments import seconds
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.core.counts import counted

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import DatasetView, OperationView

app = typer.Typer(help="Keep versions of files: commit, diff, check out, mount into jobs.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's name, OWNER/NAME or id.")]
VersionArgument = Annotated[
    str, typer.Argument(metavar="DATASET[@VERSION]", help="VERSION: a tag, the first digits of an id, or latest.")
]


@command(app, "create", examples=["corral dataset create digits", "corral dataset create faces --target forge"])
def create(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="2 to 63 letters, digits, '-' and '_'.")],
    target: Annotated[str, typer.Option(help="The target that stores it: `corral target ls`.")] = "default",
    description: Annotated[str, typer.Option(help="What the dataset contains.")] = "",
) -> None:
    """Create an empty dataset."""
    with terminal.client() as client:
        view = client.datasets.create({"name": name, "target": target, "description": description})
    terminal.answer(view, f"Created dataset {view['name']} ({view['id']}). Fill it: corral dataset commit {name} DIR")


@command(app, "ls", examples=["corral dataset ls", "corral dataset ls --mine"])
def ls(
    terminal: Terminal,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own datasets.")] = False,
    target: Annotated[str | None, typer.Option(help="Only datasets in this target.")] = None,
) -> None:
    """List your datasets and those that others share with you."""
    with terminal.client() as client:
        found = list(client.datasets.list(target=target, mine=mine))
    now = terminal.now()
    terminal.table(
        ("NAME", "OWNER", "VERSIONS", "LATEST", "FILES", "SIZE", "STORED", "TARGET", "CHANGED", "TAGS~?"),
        found,
        lambda view: (
            view["name"],
            view["owner"],
            str(view["versions"]),
            view["latest"]["short"] if view["latest"] else formats.NOTHING,
            str(view["latest"]["files"]) if view["latest"] else formats.NOTHING,
            formats.size(view["latest"]["bytes"] if view["latest"] else None),
            formats.size(view["size_bytes"]),
            view["target"],
            formats.ago(view["latest"]["at"] if view["latest"] else view["created_at"], now),
            formats.listed(sorted(view["tags"])),
        ),
        empty="No datasets. Create one: corral dataset create --help",
    )


@command(app, "show", examples=["corral dataset show digits", "corral dataset show ann/faces@v2"])
def show(terminal: Terminal, dataset: VersionArgument) -> None:
    """Show a dataset, or one version of it with its files."""
    ref, version = _split(dataset)
    with terminal.client() as client:
        view = client.datasets.find(ref)
        if version is None:
            terminal.answer(view, dataset_texts.described(view))
            return
        found = client.datasets.version(view["id"], version)
        files = list(client.datasets.files(view["id"], found["id"]))
    text = [dataset_texts.version_described(view, found), ""]
    text += [
        f"{dataset_texts.size_of(file):>12}  {file['name']}{'/' if file['kind'] == 'dir' else ''}" for file in files
    ]
    terminal.answer({**found, "dataset": view["id"], "entries": files}, "\n".join(text))


@command(
    app,
    "commit",
    examples=[
        'corral dataset commit digits ./digits -m "first import"',
        "corral dataset commit digits --volume data --path digits/clean",
        "corral dataset commit model --job j-12 --path weights --tag best",
        "corral dataset commit model ./weights --job j-12",
    ],
)
def commit(
    terminal: Terminal,
    dataset: NameArgument,
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A directory of this machine.", show_default=False)
    ] = None,
    message: Annotated[str, typer.Option("-m", "--message", help="What has changed in this version.")] = "",
    volume: Annotated[
        str | None, typer.Option(metavar="VOLUME", help="Commit a directory of a volume instead.")
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="The job that made it; without DIR, the job's output directory is committed."),
    ] = None,
    path: Annotated[str, typer.Option(metavar="PATH", help="The directory in the volume or in the outputs.")] = "",
    parent: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Commit only if this is still the newest version.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Tag the version, too.")] = None,
) -> None:
    """Commit a directory as a new version. Only data that no version contains yet is sent and stored."""
    if (directory is not None) + (volume is not None) > 1 or not (directory or volume or job):
        raise WrongUsage("say what to commit: DIR, --volume or --job")
    if directory is not None and path:
        raise WrongUsage("--path is for --volume and --job")
    # Inside a job, that job is recorded as the maker of the version, unless --job names another.
    maker = job or (os.environ.get("CORRAL_JOB_ID") if directory is not None else None)
    body: dict[str, Any] = {"message": message, "parent": parent, "produced_by": maker}
    with terminal.client() as client:
        view = client.datasets.find(dataset)
        if directory is not None:
            operation = _commit_here(terminal, client, view, directory, body)
        else:
            source = {"volume": volume, "path": path} if volume is not None else {"job": job, "path": path}
            begun = client.datasets.commit(view["id"], {**body, "from": source})
            operation = wait_for(terminal, client, begun, "committing")
        _check(operation, "the commit")
        found = client.datasets.version(view["id"], str(operation["version"]))
        if tag is not None:
            client.datasets.tag(view["id"], tag, found["id"])
    is_new = bool((operation["result"] or {}).get("created", True))
    text = (
        f"Committed {found['short']} to {view['name']}: {formats.count(found['files'], 'file')}, "
        f"{formats.size(found['bytes'])}, {formats.size(found['new_bytes'])} new"
        if is_new
        else f"Nothing changed: {view['name']} is at {found['short']}"
    )
    terminal.answer({**found, "created": is_new}, text)


@command(app, "log", examples=["corral dataset log digits", "corral dataset log digits -n 5 -o json"])
def log(
    terminal: Terminal,
    dataset: NameArgument,
    limit: Annotated[int | None, typer.Option("-n", "--limit", min=1, help="At most N versions.")] = None,
) -> None:
    """List the versions of a dataset, newest first."""
    with terminal.client() as client:
        found = list(client.datasets.log(client.datasets.find(dataset)["id"], limit=limit))
    now = terminal.now()
    terminal.table(
        ("VERSION", "WHEN", "AUTHOR", "FILES", "SIZE", "NEW", "JOB", "TAGS", "MESSAGE~"),
        found,
        lambda view: (
            view["short"],
            formats.ago(view["at"], now),
            view["author"],
            str(view["files"]),
            formats.size(view["bytes"]),
            formats.size(view["new_bytes"]),
            view["produced_by"] or formats.NOTHING,
            formats.listed(view["tags"]),
            dataset_texts.first_line(view["message"]),
        ),
        empty="No versions yet: corral dataset commit --help",
    )


@command(app, "diff", examples=["corral dataset diff digits", "corral dataset diff digits v1 latest"])
def diff(
    terminal: Terminal,
    dataset: NameArgument,
    old: Annotated[str | None, typer.Argument(metavar="[FROM]", help="Default: the version before.")] = None,
    new: Annotated[str, typer.Argument(metavar="[TO]", help="Default: the newest version.")] = "latest",
) -> None:
    """Show what changed between two versions."""
    with terminal.client() as client:
        found = client.datasets.diff(client.datasets.find(dataset)["id"], old, new)
    lines = [f"+ {entry['path']}  {formats.size(entry['size'])}" for entry in found["added"]]
    lines += [f"- {entry['path']}  {formats.size(entry['old_size'])}" for entry in found["removed"]]
    lines += [
        f"~ {entry['path']}  {formats.size(entry['old_size'])} -> {formats.size(entry['size'])}"
        for entry in found["changed"]
    ]
    if found["truncated"]:
        lines.append("…")
    lines.append(
        f"{found['added_count']} added, {found['removed_count']} removed, {found['changed_count']} changed; "
        f"+{formats.size(found['bytes_added'])} -{formats.size(found['bytes_removed'])}"
    )
    terminal.answer(found, "\n".join(lines))


@command(
    app,
    "checkout",
    examples=["corral dataset checkout digits ./digits", "corral dataset checkout ann/faces@v2 /data/faces"],
)
def checkout(
    terminal: Terminal,
    dataset: VersionArgument,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory that does not exist or is empty.")],
) -> None:
    """Write the files of a version into a directory. Everything is verified. Run it again after an interruption."""
    from corral.client.datasets import dataset_transfer

    ref, version = _split(dataset)
    with terminal.client() as client, _library_errors():
        view = client.datasets.find(ref)
        found = client.datasets.version(view["id"], version or "latest")
        with progress_of(terminal, view["name"]) as progress:
            dataset_transfer.checkout(
                client,
                view["id"],
                found,
                directory,
                lambda state: progress(state.bytes_done, state.bytes_total),
            )
    text = f"Checked out {view['name']}@{found['short']} to {directory}: {formats.count(found['files'], 'file')}"
    terminal.answer({"dataset": view["id"], "version": found["id"], "directory": str(directory)}, text)


@command(app, "tag", examples=["corral dataset tag digits v1", "corral dataset tag digits best 3fa9c2"])
def tag(
    terminal: Terminal,
    dataset: NameArgument,
    name: Annotated[
        str, typer.Argument(metavar="TAG", help="The tag's name; a tag can be moved to another version later.")
    ],
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help="Default: the newest version.")] = "latest",
) -> None:
    """Tag a version."""
    with terminal.client() as client:
        view = client.datasets.tag(client.datasets.find(dataset)["id"], name, version)
    terminal.answer(view, f"{dataset}@{name} is {view['version'][:12]}")


@command(app, "untag", examples=["corral dataset untag digits v1"])
def untag(terminal: Terminal, dataset: NameArgument, name: Annotated[str, typer.Argument(metavar="TAG")]) -> None:
    """Remove a tag. The version stays."""
    with terminal.client() as client:
        client.datasets.untag(client.datasets.find(dataset)["id"], name)
    terminal.answer({"dataset": dataset, "tag": name, "deleted": True}, f"Removed tag {name} of {dataset}")


@command(
    app,
    "share",
    examples=["corral dataset share digits --user bob", "corral dataset share digits --group vision --write"],
)
def share(
    terminal: Terminal,
    dataset: NameArgument,
    user: Annotated[list[str] | None, typer.Option(metavar="USER", help="A user who may use it; repeatable.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="A group that may use it; repeatable.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Allow them to commit and tag, too.")] = False,
    unshare: Annotated[bool, typer.Option("--nobody", help="Share it with no user: only you see it.")] = False,
) -> None:
    """Replace the users and groups that a dataset is shared with."""
    if unshare == bool(user or group):
        raise WrongUsage("say with whom: --user, --group, or --nobody")
    mode = "rw" if write else "ro"
    shares = [{"kind": "user", "name": name, "mode": mode} for name in user or []]
    shares += [{"kind": "group", "name": name, "mode": mode} for name in group or []]
    with terminal.client() as client:
        view = client.datasets.share(client.datasets.find(dataset)["id"], shares)
    people = [f"{share['kind']} {share['name']} ({share['mode']})" for share in view["shares"]]
    terminal.answer(
        view, f"{view['name']} is shared with {formats.listed(people)}" if people else f"{view['name']} is not shared"
    )


@command(app, "rm", examples=["corral dataset rm digits"])
def rm(terminal: Terminal, dataset: NameArgument, yes: YesOption = False) -> None:
    """Delete a dataset with all its versions."""
    with terminal.client() as client:
        view = client.datasets.find(dataset)
        terminal.confirm(f"Delete {view['name']} with {formats.count(view['versions'], 'version')}?", assume_yes=yes)
        client.datasets.delete(view["id"])
    terminal.answer({"name": view["name"], "deleted": True}, f"Deleted dataset {view['name']}")


@command(
    app,
    "lineage",
    examples=["corral dataset lineage digits", "corral dataset lineage digits@v1", "corral dataset lineage --job j-12"],
)
def lineage(
    terminal: Terminal,
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET[@VERSION]]", show_default=False)] = None,
    job: Annotated[
        str | None, typer.Option(metavar="JOB", help="Show the versions that this job used and made instead.")
    ] = None,
) -> None:
    """Show which jobs used which version, and which job made it."""
    if (dataset is None) == (job is None):
        raise WrongUsage("name a dataset, or a job with --job")
    with terminal.client() as client:
        if job is not None:
            of_job = client.datasets.of_job(job)
            terminal.answer(of_job, dataset_texts.of_job(of_job))
            return
        ref, version = _split(str(dataset))
        found = client.datasets.lineage(client.datasets.find(ref)["id"], version)
    terminal.answer(found, "\n".join(dataset_texts.lineage_lines(found)) or "No versions yet")


@command(app, "verify", examples=["corral dataset verify digits", "corral dataset verify digits@v1"])
def verify(terminal: Terminal, dataset: VersionArgument) -> None:
    """Read all data of a version and compare it with its digests. Fails if data is damaged."""
    ref, version = _split(dataset)
    with terminal.client() as client:
        view = client.datasets.find(ref)
        begun = client.datasets.verify(view["id"], version or "latest")
        operation = wait_for(terminal, client, begun, "verifying")
    _check(operation, "the verification")
    result = operation["result"] or {}
    if not result["ok"]:
        terminal.answer(operation, "\n".join(dataset_texts.damages(result)))
        raise typer.Exit(1)
    terminal.answer(
        operation, f"{view['name']} is intact: {counted(result['pieces'], 'piece')}, {formats.size(result['bytes'])}"
    )


@command(app, "gc", examples=["corral dataset gc", "corral dataset gc --target forge --yes"])
def gc(
    terminal: Terminal,
    target: Annotated[str, typer.Option(help="The target to clean up.")] = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed; the default.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Remove it.")] = False,
    grace: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Keep newer data, which may belong to a commit that has not finished."),
    ] = "1d",
) -> None:
    """Remove data that no version needs any more (operators). Without --yes only shows what would be removed."""
    if yes and dry_run:
        raise WrongUsage("--dry-run and --yes exclude each other")
    grace_seconds = seconds("--grace", grace)
    with terminal.client() as client:
        begun = client.datasets.collect(target, dry_run=not yes, grace_seconds=grace_seconds)
        operation = wait_for(terminal, client, begun, "collecting")
    _check(operation, "the collection")
    terminal.answer(operation, dataset_texts.collected(target, operation["result"] or {}))


# ---------------------------------------------------------------- operations that take long


def wait_for(terminal: Terminal, client: Client, operation: OperationView, what: str) -> OperationView:
    """Wait for an operation of the server, with a progress bar."""
    with progress_of(terminal, what) as progress:

        def show(view: OperationView) -> None:
            if view["progress"] is not None:
                progress(view["progress"]["done_bytes"], view["progress"]["total_bytes"])

        return client.datasets.wait(operation, show)


def _check(operation: OperationView, what: str) -> None:
    if operation["state"] != "ready":
        raise Refused(f"{what} failed: {operation['error']}")


def _commit_here(
    terminal: Terminal, client: Client, view: DatasetView, directory: Path, body: dict[str, Any]
) -> OperationView:
    from corral.client.datasets import dataset_transfer

    with _library_errors(), progress_of(terminal, view["name"]) as progress:
        return dataset_transfer.commit(
            client, view["id"], directory, body, lambda state: progress(state.bytes_done, state.bytes_total)
        )


@contextmanager
def _library_errors() -> Iterator[None]:
    from corral.datasets.errors import DatasetError

    try:
        yield
    except DatasetError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"{error.filename or 'the disk'}: {error.strerror}") from None


def _split(text: str) -> tuple[str, str | None]:
    ref, at, version = text.partition("@")
    if not ref or (at and not version):
        raise WrongUsage(f"{text!r} is not a dataset: write NAME or NAME@VERSION")
    return ref, version or None
