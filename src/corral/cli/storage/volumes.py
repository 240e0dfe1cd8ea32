"""`corral volume`: storage that jobs mount and that stays after they end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.client.client import Client
    from corral.client.views import ShareKind, ShareMode, VolumeShareView, VolumeView

app = typer.Typer(help="Manage the storage that your jobs mount.", no_args_is_help=True)

VolumeArgument = Annotated[
    str, typer.Argument(metavar="VOLUME", help="A volume's name, OWNER/NAME, or its id, from `corral volume ls`.")
]
UserOption = Annotated[list[str] | None, typer.Option(metavar="USER", help="A user; repeatable.")]
GroupOption = Annotated[list[str] | None, typer.Option(metavar="GROUP", help="A group; repeatable.")]

#: How long `create` waits until the new volume is ready.
READY_SECONDS = 10.0


@command(
    app,
    "create",
    examples=[
        "corral volume create data --type block --size 100GiB",
        "corral volume create shared --type filesystem --size 1TiB",
        "corral volume create images --type object --object-store lab --prefix imagenet",
    ],
)
def create(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="2 to 63 letters, digits, - and _.")],
    type: Annotated[
        str, typer.Option(help="block: one writer or many readers; filesystem: many of both; object: a bucket.")
    ] = "filesystem",
    size: Annotated[str | None, typer.Option(help="Its largest size, such as 100GiB; not for a bucket.")] = None,
    cluster: Annotated[str | None, typer.Option(help="The cluster that stores it; default: the only cluster.")] = None,
    object_store: Annotated[
        str | None, typer.Option("--object-store", metavar="NAME", help="The bucket: `corral object-store ls`.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="The part of the bucket that the volume contains.")] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Purpose of the volume, at most 500 characters.")
    ] = None,
) -> None:
    """Create a volume of your own, within your quota."""
    flags = {"size": size, "cluster": cluster, "object_store": object_store, "prefix": prefix}
    flags["description"] = description
    body: dict[str, Any] = {
        "name": name,
        "type": type,
        **{key: value for key, value in flags.items() if value is not None},
    }
    with terminal.client() as client:
        view = _ready(client, client.volumes.create(body))
    terminal.answer(view, f"Created volume {view['name']} ({view['id']}), {view['state']}. Mount it: {_mount(view)}")


def _ready(client: Client, view: VolumeView) -> VolumeView:
    """Wait until the volume can be used, because the next command often copies into it; at most READY_SECONDS."""
    until = time.monotonic() + READY_SECONDS
    while view["state"] == "creating" and time.monotonic() < until:
        time.sleep(0.05)
        view = client.volumes.get(view["id"])
    return view


@command(
    app,
    "ls",
    examples=["corral volume ls", "corral volume ls --mine", "corral volume ls --type block -o json"],
)
def ls(
    terminal: Terminal,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own volumes.")] = False,
    type: Annotated[str | None, typer.Option(help="block, filesystem or object.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USER", help="Only volumes of this user.")] = None,
) -> None:
    """List your volumes and those that others share with you; operators see all."""
    filters = {"mine": True if mine else None, "type": type, "owner": owner}
    with terminal.client() as client:
        found = list(client.volumes.list(**filters))
    terminal.table(
        ("ID", "NAME~", "OWNER", "TYPE", "STATE!", "SIZE>", "USED>", "MODE", "JOBS>", "CLUSTER?"),
        found,
        lambda view: (
            view["id"],
            view["name"],
            view["owner"],
            view["type"],
            "full" if view["full"] else view["state"],
            formats.size(view["size_bytes"]) if view["size_bytes"] else formats.NOTHING,
            formats.NOTHING if view["used_bytes"] is None else formats.size(view["used_bytes"]),
            "rw" if view["may_write"] else "ro",
            str(len(view["jobs"])),
            view["cluster"],
        ),
        empty="No volumes. Create one: corral volume create data --size 10GiB",
    )


@command(app, "show", examples=["corral volume show data", "corral volume show ann/data -o json"])
def show(terminal: Terminal, volume: VolumeArgument) -> None:
    """Show one volume: its size, the users that it is shared with, and the jobs that mount it."""
    with terminal.client() as client:
        view = client.volumes.get(volume)
    terminal.facts(view, _facts(view, terminal.now()))


@command(app, "resize", examples=["corral volume resize data 200GiB"])
def resize(
    terminal: Terminal,
    volume: VolumeArgument,
    size: Annotated[str, typer.Argument(metavar="SIZE", help="The new size, such as 200GiB.")],
) -> None:
    """Make a volume larger. A volume cannot be made smaller."""
    with terminal.client() as client:
        view = client.volumes.resize(volume, size)
    terminal.answer(view, f"Volume {view['name']} may hold {formats.size(view['size_bytes'])}")


@command(app, "edit", examples=["corral volume edit data --description 'Images of the lab'"])
def edit(
    terminal: Terminal,
    volume: VolumeArgument,
    description: Annotated[str, typer.Option(metavar="TEXT", help="Purpose of the volume, at most 500 characters.")],
) -> None:
    """Change the description of a volume. `corral volume resize` changes the size."""
    with terminal.client() as client:
        view = client.volumes.describe(volume, description)
    terminal.answer(view, f"Changed volume {view['name']}")


@command(
    app,
    "share",
    examples=["corral volume share data --user bob", "corral volume share data --group vision --write"],
)
def share(
    terminal: Terminal,
    volume: VolumeArgument,
    user: UserOption = None,
    group: GroupOption = None,
    write: Annotated[bool, typer.Option("--write", help="Allow writing; default: only reading.")] = False,
) -> None:
    """Share a volume with more users or groups."""
    named = _named(user, group)
    mode: ShareMode = "rw" if write else "ro"
    with terminal.client() as client:
        before = client.volumes.get(volume)["shares"]
        kept = [share for share in before if (share["kind"], share["name"]) not in named]
        added: list[VolumeShareView] = [{"kind": kind, "name": name, "mode": mode} for kind, name in named]
        view = client.volumes.share(volume, [*kept, *added])
    terminal.answer(view, f"Volume {view['name']} is shared with {_shared(view['shares'])}")


@command(app, "unshare", examples=["corral volume unshare data --user bob", "corral volume unshare data --all"])
def unshare(
    terminal: Terminal,
    volume: VolumeArgument,
    user: UserOption = None,
    group: GroupOption = None,
    all_shares: Annotated[bool, typer.Option("--all", help="Remove all shares.")] = False,
) -> None:
    """Remove shares of a volume. Running jobs keep their mounts."""
    if all_shares and (user or group):
        raise WrongUsage("--all and --user or --group exclude each other")
    named = [] if all_shares else _named(user, group)
    with terminal.client() as client:
        before = [] if all_shares else client.volumes.get(volume)["shares"]
        missing = [
            name for kind, name in named if (kind, name) not in {(share["kind"], share["name"]) for share in before}
        ]
        if missing:
            raise WrongUsage(f"it is not shared with {formats.listed(missing)}", hint=f"corral volume show {volume}")
        view = client.volumes.share(volume, [share for share in before if (share["kind"], share["name"]) not in named])
    terminal.answer(view, f"Volume {view['name']} is shared with {_shared(view['shares'])}")


@command(app, "rm", examples=["corral volume rm data"])
def rm(terminal: Terminal, volume: VolumeArgument, yes: YesOption = False) -> None:
    """Delete a volume with its files; the objects of a bucket stay."""
    with terminal.client() as client:
        view = client.volumes.get(volume)
        lost = "" if view["used_bytes"] is None else f", and {formats.size(view['used_bytes'])} with it"
        question = f"Delete volume {view['owner']}/{view['name']}{lost}?"
        terminal.confirm(question, assume_yes=yes)
        client.volumes.delete(view["id"])
    terminal.answer({"deleted": view["id"]}, f"Deleted volume {view['name']}")


def _named(user: Sequence[str] | None, group: Sequence[str] | None) -> list[tuple[ShareKind, str]]:
    named: list[tuple[ShareKind, str]] = [("user", name) for name in user or ()]
    named += [("group", name) for name in group or ()]
    if not named:
        raise WrongUsage("say with whom: --user or --group")
    return named


def _mount(view: VolumeView) -> str:
    return f"corral submit --mount {view['name']}:/{view['name']}{':ro' if not view['may_write'] else ''} -- …"


def _shared(shares: Sequence[VolumeShareView]) -> str:
    shown = [f"{'group ' if share['kind'] == 'group' else ''}{share['name']} ({share['mode']})" for share in shares]
    return formats.listed(shown) if shown else "no user"


def _facts(view: VolumeView, now: float) -> list[tuple[str, str]]:
    used = formats.NOTHING if view["used_bytes"] is None else formats.size(view["used_bytes"])
    if view["size_bytes"]:
        used = f"{used} of {formats.size(view['size_bytes'])}" + (" (full)" if view["full"] else "")
    measured = f", measured {formats.ago(view['measured_at'], now)}" if view["measured_at"] else ""
    bucket = f"{view['object_store']}:{view['prefix'] or '/'}" if view["object_store"] else ""
    jobs = [f"{job['id']} ({job['name']}, {job['user']}, {job['mode']}, {job['state']})" for job in view["jobs"]]
    return [
        ("ID", view["id"]),
        ("Name", view["name"]),
        ("Description", view["description"]),
        ("Owner", view["owner"]),
        ("Type", view["type"] + (", read-only" if view["read_only"] else "")),
        ("Cluster", view["cluster"]),
        ("State", view["state"] + (f": {view['message']}" if view["message"] else "")),
        ("Used", f"{used}{measured}"),
        ("Object store", bucket),
        ("Shared with", _shared(view["shares"]) if view["shares"] else ""),
        ("Mounted by", formats.listed(jobs) if jobs else ""),
        ("Created", formats.at_and_ago(view["created_at"], now)),
    ]
