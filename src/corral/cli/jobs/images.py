"""`corral image` and `corral registry`: what jobs run in, and the logins that it is pulled with."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, command

if TYPE_CHECKING:
    from corral.client.views import ImageView, RegistryLoginView

app = typer.Typer(help="Manage the images that jobs run in.", no_args_is_help=True)
registry_app = typer.Typer(help="Manage your logins to registries.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="An image's name, from `corral image ls`.")]
OwnerOption = Annotated[
    str | None, typer.Option(help="Whose, if several have one of this name; default: yours, or a public one.")
]
LoginOption = Annotated[
    str | None, typer.Option("--login", metavar="LOGIN", help="The login to pull it with: `corral registry ls`.")
]
Description = Annotated[str | None, typer.Option(help="What is in it.")]
YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Don't ask.")]
PlatformOption = Annotated[bool, typer.Option("--platform", help="The platform's, for public images (operators).")]


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
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where it is pulled from.")],
    public: Annotated[bool, typer.Option("--public", help="Offer it to everybody (operators).")] = False,
    login: LoginOption = None,
    share_user: Annotated[list[str] | None, typer.Option(metavar="USER", help="Who may use it too.")] = None,
    share_group: Annotated[list[str] | None, typer.Option(metavar="GROUP", help="Which group may use it too.")] = None,
    description: Description = None,
) -> None:
    """Give an image a name, to run jobs in it and to share it."""
    if public and (share_user or share_group):
        raise WrongUsage("--public and --share-… exclude each other: everybody sees a public image")
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
    address: Annotated[str | None, typer.Option(help="Where it is pulled from.")] = None,
    login: LoginOption = None,
    description: Description = None,
) -> None:
    """Change an image. What you don't name stays as it is."""
    changes = _given(login, description)
    if address is not None:
        changes["address"] = address
    if not changes:
        raise WrongUsage("nothing to change", hint="corral image edit --help lists what can be.")
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
    user: Annotated[list[str] | None, typer.Option(metavar="USER", help="Who may use it.")] = None,
    group: Annotated[list[str] | None, typer.Option(metavar="GROUP", help="Which group may use it.")] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Only you.")] = False,
) -> None:
    """Say with whom you share an image; whoever is not named does not see it any more."""
    if nobody == bool(user or group):
        raise WrongUsage("say with whom: --user, --group, or --nobody")
    changes = {
        "visibility": "private" if nobody else "shared",
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
    """Delete an image's name. What the registry has stays there."""
    terminal.confirm(f"Delete image {name}?", assume_yes=yes)
    with terminal.client() as client:
        client.images.delete(name, owner=owner)
    terminal.answer({"name": name, "deleted": True}, f"Deleted image {name}")


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
            _whose(view),
            formats.ago(view["created_at"], now),
        ),
        empty="No logins. Keep one: corral registry login --help",
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
    registry: Annotated[str, typer.Argument(metavar="REGISTRY", help="Its host, with a port if it has one.")],
    user: Annotated[str, typer.Option(help="Your name there.")],
    name: Annotated[str | None, typer.Option(help="What to call the login; default: the registry's name.")] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password or token from a line of stdin.")
    ] = False,
    platform: PlatformOption = False,
) -> None:
    """Keep a login, so that jobs pull your images of that registry. The password is kept encrypted."""
    body = {
        "registry": registry,
        "username": user,
        "secret": _secret(terminal, from_stdin=password_stdin),
        "platform": platform,
    }
    with terminal.client() as client:
        view = client.images.put_login(name or registry.replace(":", "-").lower(), body)
    terminal.answer(view, f"Kept login {view['name']}: {view['username']} at {view['registry']}")


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


def _whose(view: RegistryLoginView) -> str:
    return "the platform" if view["platform"] else "you"


def _given(login_name: str | None, description: str | None) -> dict[str, Any]:
    values = {"credential": login_name, "description": description}
    return {field: value for field, value in values.items() if value is not None}


def _secret(terminal: Terminal, *, from_stdin: bool) -> str:
    """Never an argument: other users of the machine could read it there."""
    if from_stdin:
        given = sys.stdin.readline().strip()
    elif terminal.is_interactive:
        given = str(typer.prompt("Password or token", hide_input=True, err=True)).strip()
    else:
        raise WrongUsage("there is no terminal to ask for the password", hint="Pipe it in with --password-stdin.")
    if not given:
        raise WrongUsage("the password is empty", hint="Pipe it in with --password-stdin, or type it when asked.")
    return given
