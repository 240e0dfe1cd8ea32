"""`corral object-store`: the buckets that object volumes use (operators)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, given_fields
from corral.cli.terminal.hints import none_yet
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import ObjectStoreView

app = typer.Typer(help="Manage the buckets that object volumes use.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A name, from `corral object-store ls`.")]
EndpointOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The address, such as https://minio.lab.org; none: the provider's own."),
]
RegionOption = Annotated[str | None, typer.Option(help="The region of S3.")]
AccessKeyOption = Annotated[
    str | None, typer.Option(metavar="KEY", help="The access key of S3; its secret is asked for.")
]
SecretOption = Annotated[
    bool, typer.Option("--secret-stdin", help="Read the secret key, or a GCS account's key as JSON, from stdin.")
]


@command(app, "ls", examples=["corral object-store ls", "corral object-store ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the object stores. Operators see their endpoints, too."""
    with terminal.client() as client:
        found = list(client.object_stores.list())
        empty = none_yet(client, found, "object stores", "corral object-store create NAME --kind s3 --bucket BUCKET")
    terminal.table(
        ("NAME", "KIND", "BUCKET~", "PREFIX~?", "MODE", "VOLUMES>?", "ENDPOINT~?"),
        found,
        lambda view: (
            view["name"],
            view["kind"],
            view["bucket"],
            view["prefix"],
            "rw" if view["allow_write"] else "ro",
            str(view["volumes"]),
            view["endpoint"] or "",
        ),
        empty=empty,
    )


@command(app, "show", examples=["corral object-store show lab"])
def show(terminal: Terminal, name: NameArgument) -> None:
    """Show one object store. Its secret is never shown."""
    with terminal.client() as client:
        view = client.object_stores.get(name)
    terminal.facts(view, _facts(view, terminal.now()))


@command(
    app,
    "create",
    examples=[
        'echo "$SECRET" | corral object-store create lab --kind s3 --bucket lab-data --access-key AKIA… --secret-stdin',
        "corral object-store create minio --kind s3 --endpoint https://minio.example.org:9000 --bucket data",
        "corral object-store create papers --kind gcs --bucket papers --secret-stdin < key.json",
    ],
)
def create(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, '.', '_' and '-'.")],
    bucket: Annotated[str, typer.Option(help="The bucket's name.")],
    kind: Annotated[str, typer.Option(help="s3 (and compatible stores such as MinIO), or gcs.")] = "s3",
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    prefix: Annotated[str | None, typer.Option(help="Only this part of the bucket is used.")] = None,
    access_key: AccessKeyOption = None,
    secret_stdin: SecretOption = False,
    allow_write: Annotated[bool, typer.Option("--allow-write", help="Allow jobs to write to it.")] = False,
) -> None:
    """Make a bucket available for volumes (operators). Without a secret it is read anonymously."""
    body: dict[str, Any] = {"name": name, "kind": kind, "bucket": bucket, "allow_write": allow_write}
    given = {"endpoint": endpoint, "region": region, "prefix": prefix, "access_key": access_key}
    body.update(given_fields(given))
    if secret_stdin or access_key is not None:
        body["secret"] = _secret(terminal, from_stdin=secret_stdin)
    with terminal.client() as client:
        view = client.object_stores.create(body)
    terminal.answer(view, f"Created object store {view['name']} ({view['kind']}, {_mode(view)}).")
    terminal.note(f"Next: corral object-store test {name}")


@command(
    app,
    "edit",
    examples=[
        "corral object-store edit lab --allow-write",
        'echo "$SECRET" | corral object-store edit lab --access-key AKIA… --secret-stdin',
    ],
)
def edit(
    terminal: Terminal,
    name: NameArgument,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    access_key: AccessKeyOption = None,
    secret_stdin: SecretOption = False,
    allow_write: Annotated[
        bool | None, typer.Option("--allow-write/--read-only", help="Whether jobs may write to it.")
    ] = None,
) -> None:
    """Change the connection to a bucket (operators). Options that are not given stay as they are."""
    given = {"region": region, "access_key": access_key, "allow_write": allow_write}
    changes: dict[str, Any] = given_fields(given)
    if endpoint is not None:
        changes["endpoint"] = None if endpoint == "none" else endpoint
    if secret_stdin or access_key is not None:
        changes["secret"] = _secret(terminal, from_stdin=secret_stdin)
    check_changes(changes, "object-store edit")
    with terminal.client() as client:
        view = client.object_stores.edit(name, changes)
    terminal.answer(view, f"Changed object store {view['name']} ({_mode(view)}).")


@command(app, "test", examples=["corral object-store test lab"])
def test(terminal: Terminal, name: NameArgument) -> None:
    """List the bucket as a test, and show the reason if that fails (operators)."""
    with terminal.client() as client:
        view = client.object_stores.test(name)
    seen = f": {formats.count(view['objects_seen'], 'entry', 'entries')} at its top level" if view["ok"] else ""
    terminal.answer(view, f"{'ok' if view['ok'] else 'failed'}: {view['detail']}{seen}")
    if not view["ok"]:
        raise typer.Exit(1)


@command(app, "rm", examples=["corral object-store rm lab"])
def rm(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Remove an object store from corral (operators). The bucket is not changed."""
    terminal.confirm(f"Remove object store {name}?", assume_yes=yes)
    with terminal.client() as client:
        client.object_stores.delete(name)
    terminal.answer({"deleted": name}, f"Removed object store {name}")


def _secret(terminal: Terminal, *, from_stdin: bool) -> str:
    """All of stdin: the key of a GCS account has many lines."""
    if from_stdin:
        return sys.stdin.read().strip()
    return terminal.password("Secret", from_stdin=False)


def _mode(view: ObjectStoreView) -> str:
    return "jobs may write" if view["allow_write"] else "read-only"


def _facts(view: ObjectStoreView, now: float) -> list[tuple[str, str]]:
    return [
        ("Name", view["name"]),
        ("Kind", view["kind"]),
        ("Bucket", view["bucket"]),
        ("Prefix", view["prefix"]),
        ("Endpoint", view["endpoint"] or ""),
        ("Region", view["region"]),
        ("Access key", view["access_key"]),
        ("Secret", "stored" if view["has_secret"] else ""),
        ("Mode", _mode(view)),
        ("Volumes", str(view["volumes"])),
        ("Created", formats.at_and_ago(view["created_at"], now)),
    ]
