"""`corral volume`: storage that jobs mount and that outlives them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, command

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
YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Don't ask.")]

#: how long a new volume is waited for
MADE_SECONDS = 10.0


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
    size: Annotated[str | None, typer.Option(help="What it may hold, such as 100GiB; not of a bucket.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Where it is; default: the only one there is.")] = None,
    object_store: Annotated[
        str | None, typer.Option("--object-store", metavar="NAME", help="The bucket: `corral object-store ls`.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="The part of the bucket that it shows.")] = None,
) -> None:
    """Create a volume of your own, within your quota."""
    flags = {"size": size, "cluster": cluster, "object_store": object_store, "prefix": prefix}
    body: dict[str, Any] = {"name": name, "type": type, **{key: one for key, one in flags.items() if one is not None}}
    with terminal.client() as client:
        view = _made(client, client.volumes.create(body))
    terminal.answer(view, f"Created volume {view['name']} ({view['id']}), {view['state']}. Mount it: {_mount(view)}")


def _made(client: Client, view: VolumeView) -> VolumeView:
    """As it is when it can be used: the next command is often one that copies into it. A slow cluster goes on alone."""
    until = time.monotonic() + MADE_SECONDS
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
    mine: Annotated[bool, typer.Option("--mine", help="Only your own.")] = False,
    type: Annotated[str | None, typer.Option(help="block, filesystem or object.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USER", help="Only this user's.")] = None,
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
    """Show one volume: what is in it, with whom it is shared, and which jobs mount it."""
    with terminal.client() as client:
        view = client.volumes.get(volume)
    terminal.facts(view, _facts(view, terminal.now()))


@command(app, "resize", examples=["corral volume resize data 200GiB"])
def resize(
    terminal: Terminal,
    volume: VolumeArgument,
    size: Annotated[str, typer.Argument(metavar="SIZE", help="What it may hold from now on, such as 200GiB.")],
) -> None:
    """Make a volume larger. It never shrinks."""
    with terminal.client() as client:
        view = client.volumes.resize(volume, size)
    terminal.answer(view, f"Volume {view['name']} may hold {formats.size(view['size_bytes'])}")


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
    write: Annotated[bool, typer.Option("--write", help="To write as well; default: to read.")] = False,
) -> None:
    """Share a volume with users or groups, beside those that it is shared with already."""
    named = _named(user, group)
    mode: ShareMode = "rw" if write else "ro"
    with terminal.client() as client:
        before = client.volumes.get(volume)["shares"]
        kept = [one for one in before if (one["kind"], one["name"]) not in named]
        added: list[VolumeShareView] = [{"kind": kind, "name": name, "mode": mode} for kind, name in named]
        view = client.volumes.share(volume, [*kept, *added])
    terminal.answer(view, f"Volume {view['name']} is shared with {_shared(view['shares'])}")


@command(app, "unshare", examples=["corral volume unshare data --user bob", "corral volume unshare data --all"])
def unshare(
    terminal: Terminal,
    volume: VolumeArgument,
    user: UserOption = None,
    group: GroupOption = None,
    everybody: Annotated[bool, typer.Option("--all", help="With nobody any more.")] = False,
) -> None:
    """Share a volume no longer. Jobs that run keep what they have."""
    if everybody and (user or group):
        raise WrongUsage("--all and --user or --group exclude each other")
    named = [] if everybody else _named(user, group)
    with terminal.client() as client:
        before = [] if everybody else client.volumes.get(volume)["shares"]
        missing = [name for kind, name in named if (kind, name) not in {(one["kind"], one["name"]) for one in before}]
        if missing:
            raise WrongUsage(f"it is not shared with {formats.listed(missing)}", hint=f"corral volume show {volume}")
        view = client.volumes.share(volume, [one for one in before if (one["kind"], one["name"]) not in named])
    terminal.answer(view, f"Volume {view['name']} is shared with {_shared(view['shares'])}")


@command(app, "rm", examples=["corral volume rm data"])
def rm(terminal: Terminal, volume: VolumeArgument, yes: YesOption = False) -> None:
    """Delete a volume with all that is in it; of a bucket only the name goes."""
    with terminal.client() as client:
        view = client.volumes.get(volume)
        lost = "" if view["used_bytes"] is None else f", and {formats.size(view['used_bytes'])} with it"
        what = f"Delete volume {view['owner']}/{view['name']}{lost}?"
        terminal.confirm(what, assume_yes=yes)
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
    told = [f"{'group ' if one['kind'] == 'group' else ''}{one['name']} ({one['mode']})" for one in shares]
    return formats.listed(told) if told else "nobody"


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
