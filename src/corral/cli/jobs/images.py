"""`corral image` and `corral registry`: images for jobs, and logins to the registries of images."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, delete_named, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import ImageView, RegistryLoginView

app = typer.Typer(help="Manage the images that jobs run in.", no_args_is_help=True)
registry_app = typer.Typer(help="Manage your logins to registries.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="An image's name, from `corral image ls`.")]
OwnerOption = Annotated[
    str | None,
    typer.Option(help="The owner, if several users have an image of this name; default: you, else the public one."),
]
LoginOption = Annotated[
    str | None, typer.Option("--login", metavar="LOGIN", help="The login to pull the image with: `corral registry ls`.")
]
Description = Annotated[str | None, typer.Option(help="What the image contains.")]
PlatformOption = Annotated[
    bool, typer.Option("--platform", help="A login of the platform, for public images (operators).")
]


@command(app, "ls", examples=["corral image ls"])
def ls(terminal: Terminal) -> None:
    """List your images, the public ones, and those that others share with you."""
    with terminal.client() as client:
        found = list(client.images.list())
    now = terminal.now()
    terminal.table(
        ("NAME", "OWNER", "VISIBILITY", "ADDRESS~", "CREATED", "DESCRIPTION~?"),
        found,
        lambda view: (
            view["name"],
            view["owner"] or "-",
            view["visibility"],
            view["address"],
            formats.ago(view["created_at"], now),
            view["description"],
        ),
        empty="No images. Create one: corral image create --help, or give jobs an address with --image",
    )


@command(app, "show", examples=["corral image show pytorch", "corral image show train --owner ada"])
def show(terminal: Terminal, name: NameArgument, owner: OwnerOption = None) -> None:
    """Show one image."""
    with terminal.client() as client:
        view = client.images.get(name, owner=owner)
    terminal.answer(view, _described(view))


@command(
    app,
    "create",
    examples=[
        "corral image create train registry.example.org/team/train:1.4",
        "corral image create pytorch docker.io/pytorch/pytorch:2.4.0 --public",
        "corral image create train registry.example.org/team/train:1.4 --login work --share-user bob",
    ],
)
def create(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, '.', '_' and '-'.")],
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The address that the image is pulled from.")],
    public: Annotated[bool, typer.Option("--public", help="Offer the image to all users (operators).")] = False,
    login: LoginOption = None,
    share_user: Annotated[
        list[str] | None, typer.Option(metavar="USER", help="A user who may use it too; repeatable.")
    ] = None,
    share_group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="A group that may use it too; repeatable.")
    ] = None,
    description: Description = None,
) -> None:
    """Give an image a name, to run jobs in it and to share it."""
    if public and (share_user or share_group):
        raise WrongUsage("--public and --share-… exclude each other: all users see a public image")
    shared = bool(share_user or share_group)
    body: dict[str, Any] = {
        "name": name,
        "address": address,
        "visibility": "public" if public else "shared" if shared else "private",
        "shared_users": share_user or [],
        "shared_groups": share_group or [],
        **_given(login, description),
    }
    with terminal.client() as client:
        view = client.images.create(body)
    terminal.answer(view, f"Created image {view['name']} ({view['visibility']}) of {view['address']}")


@command(app, "edit", examples=["corral image edit train --address registry.example.org/team/train:1.5"])
def edit(
    terminal: Terminal,
    name: NameArgument,
    owner: OwnerOption = None,
    address: Annotated[str | None, typer.Option(help="The address that the image is pulled from.")] = None,
    login: LoginOption = None,
    description: Description = None,
) -> None:
    """Change an image. Options that are not given stay as they are."""
    changes = _given(login, description)
    if address is not None:
        changes["address"] = address
    check_changes(changes, "image edit")
    with terminal.client() as client:
        view = client.images.edit(name, changes, owner=owner)
    terminal.answer(view, f"Image {view['name']} is {view['address']}")


@command(
    app,
    "share",
    examples=[
        "corral image share train --user bob --user eve",
        "corral image share train --group vision",
        "corral image share train --nobody",
    ],
)
def share(
    terminal: Terminal,
    name: NameArgument,
    user: Annotated[list[str] | None, typer.Option(metavar="USER", help="A user who may use it; repeatable.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="A group that may use it; repeatable.")
    ] = None,
    unshare: Annotated[bool, typer.Option("--nobody", help="Share it with no user: only you see it.")] = False,
) -> None:
    """Replace the users and groups that an image is shared with."""
    if unshare == bool(user or group):
        raise WrongUsage("say with whom: --user, --group, or --nobody")
    changes = {
        "visibility": "private" if unshare else "shared",
        "shared_users": user or [],
        "shared_groups": group or [],
    }
    with terminal.client() as client:
        view = client.images.edit(name, changes)
    people = [*view["shared_users"], *(f"group {item}" for item in view["shared_groups"])]
    terminal.answer(
        view, f"Image {name} is shared with {formats.listed(people)}" if people else f"Image {name} is yours"
    )


@command(app, "rm", examples=["corral image rm train"])
def rm(terminal: Terminal, name: NameArgument, owner: OwnerOption = None, yes: YesOption = False) -> None:
    """Delete an image from corral. The registry keeps it."""
    delete_named(terminal, "image", name, lambda client: client.images.delete(name, owner=owner), yes=yes)


@command(registry_app, "ls", examples=["corral registry ls"])
def logins(terminal: Terminal) -> None:
    """List your logins, without their secrets."""
    with terminal.client() as client:
        found = list(client.images.logins())
    now = terminal.now()
    terminal.table(
        ("NAME", "REGISTRY", "USER", "OF", "SINCE"),
        found,
        lambda view: (
            view["name"],
            view["registry"],
            view["username"],
            _owner_text(view),
            formats.ago(view["created_at"], now),
        ),
        empty="No logins. Store one: corral registry login --help",
    )


@command(
    registry_app,
    "images",
    examples=["corral registry images work", "corral registry images work --repository team/train"],
)
def registry_images(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A login's name, from `corral registry ls`.")],
    repository: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this repository, such as team/train.")
    ] = None,
    platform: PlatformOption = False,
) -> None:
    """List the images that a login can see in its registry, with version, size and date.

    Of a GitLab these are the images of your projects; its login needs a personal access token with the scopes read_api
    and read_registry. An operator names registries that may be listed in `images.registries`.
    """
    with terminal.client() as client:
        found = list(client.images.registry_images(name, repository=repository, platform=platform))
    now = terminal.now()
    terminal.table(
        ("REPOSITORY~", "VERSION", "SIZE>", "CREATED", "ADDRESS~"),
        found,
        lambda view: (
            view["repository"],
            view["version"],
            formats.size(view["size_bytes"]),
            formats.ago(view["created_at"], now),
            view["address"],
        ),
        empty="The registry has no images that this login can see.",
    )


@command(
    registry_app,
    "login",
    examples=[
        "corral registry login registry.example.org --user ada",
        'echo "$TOKEN" | corral registry login registry.example.org --user ada --password-stdin --name work',
    ],
)
def login(
    terminal: Terminal,
    registry: Annotated[
        str, typer.Argument(metavar="REGISTRY", help="The registry's host, with a port if it has one.")
    ],
    user: Annotated[str, typer.Option(help="Your user name at the registry.")],
    name: Annotated[str | None, typer.Option(help="The login's name; default: the registry's name.")] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password or token from a line of stdin.")
    ] = False,
    platform: PlatformOption = False,
) -> None:
    """Store a login, so that jobs can pull your images from that registry. The password is stored encrypted."""
    body = {
        "registry": registry,
        "username": user,
        "secret": _secret(terminal, from_stdin=password_stdin),
        "platform": platform,
    }
    with terminal.client() as client:
        view = client.images.put_login(name or registry.replace(":", "-").lower(), body)
    terminal.answer(view, f"Stored login {view['name']}: {view['username']} at {view['registry']}")


@command(registry_app, "logout", examples=["corral registry logout work"])
def logout(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A login's name, from `corral registry ls`.")],
    platform: PlatformOption = False,
    yes: YesOption = False,
) -> None:
    """Remove a login."""
    terminal.confirm(f"Remove login {name}?", assume_yes=yes)
    with terminal.client() as client:
        client.images.delete_login(name, platform=platform)
    terminal.answer({"name": name, "deleted": True}, f"Removed login {name}")


def _described(view: ImageView) -> str:
    lines = [
        ("Image", view["name"]),
        ("Owner", view["owner"] or "the platform"),
        ("Address", view["address"]),
        ("Visibility", view["visibility"]),
        ("Shared with", formats.listed([*view["shared_users"], *(f"group {item}" for item in view["shared_groups"])])),
        ("Login", view["credential"] or ""),
        ("Description", view["description"]),
    ]
    return "\n".join(f"{label + ':':<13} {value}" for label, value in lines if value)


def _owner_text(view: RegistryLoginView) -> str:
    return "the platform" if view["platform"] else "you"


def _given(login_name: str | None, description: str | None) -> dict[str, Any]:
    values = {"credential": login_name, "description": description}
    return given_fields(values)


def _secret(terminal: Terminal, *, from_stdin: bool) -> str:
    """Asked for or read from stdin, never an argument: other users of the machine could read that."""
    if from_stdin:
        given = sys.stdin.readline().strip()
    elif terminal.is_interactive:
        given = str(typer.prompt("Password or token", hide_input=True, err=True)).strip()
    else:
        raise WrongUsage("there is no terminal to ask for the password", hint="Pipe it in with --password-stdin.")
    if not given:
        raise WrongUsage("the password is empty", hint="Pipe it in with --password-stdin, or type it when asked.")
    return given
