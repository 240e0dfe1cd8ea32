"""`corral user`: manage users (operators)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import delete_each, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The option value that means no group.
NO_GROUP = "none"

user_app = typer.Typer(help="Manage users (operators).", no_args_is_help=True)

UserArgument = Annotated[str, typer.Argument(metavar="USER", help="A user's name.")]
PermissionGroupOption = Annotated[
    str | None, typer.Option(help="The user's permission group, from `corral permission-group ls`.")
]
DisplayNameOption = Annotated[str | None, typer.Option(help="The full name.")]
EmailOption = Annotated[str | None, typer.Option(help="The e-mail address.")]


@command(user_app, "ls", examples=["corral user ls", "corral user ls --group vision", "corral user ls --search maria"])
def list_users(
    terminal: Terminal,
    role: Annotated[str | None, typer.Option(help="Only with this role.")] = None,
    group: Annotated[str | None, typer.Option(help="Only of this group.")] = None,
    permission_group: Annotated[str | None, typer.Option(help="Only of this permission group.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only with this in a name or address.")] = None,
) -> None:
    """List the users."""
    with terminal.client() as client:
        found = list(client.people.users(role=role, group=group, permission_group=permission_group, q=search))
    now = terminal.now()
    terminal.table(
        ("USER", "ROLE", "SIGN-IN", "GROUP", "PERMISSIONS", "JOBS>", "LAST SEEN", "FULL NAME~?", "CREATED?"),
        found,
        lambda view: (
            view["name"],
            view["role"],
            "disabled" if view["disabled"] else view["provider"],
            view["group"] or formats.NOTHING,
            view["permission_group"],
            str(view["active_jobs"]),
            formats.ago(view["last_seen_at"], now),
            view["display_name"],
            formats.ago(view["created_at"], now),
        ),
        empty="No users. Create one: corral user create NAME",
    )


@command(user_app, "show", examples=["corral user show maria"])
def show_user(terminal: Terminal, name: UserArgument) -> None:
    """Show one user."""
    with terminal.client() as client:
        view = client.people.user(name)
    now = terminal.now()
    terminal.facts(
        view,
        (
            ("User", view["name"]),
            ("Name", view["display_name"]),
            ("E-mail", view["email"]),
            ("Role", view["role"]),
            ("Sign-in", "disabled" if view["disabled"] else view["provider"]),
            ("Group", view["group"] or "in no group"),
            ("Permission group", view["permission_group"]),
            ("Active jobs", str(view["active_jobs"])),
            ("Last seen", formats.ago(view["last_seen_at"], now)),
            ("Created", formats.at_and_ago(view["created_at"], now)),
        ),
    )


@command(
    user_app,
    "create",
    examples=[
        "corral user create maria",
        'echo "$PASSWORD" | corral user create maria --role scientist --password-stdin',
        'corral user create maria --group vision --display-name "Maria Muster" --no-password',
    ],
)
def create_user(
    terminal: Terminal,
    name: UserArgument,
    role: Annotated[str | None, typer.Option(help="scientist (the default) or operator.")] = None,
    group: Annotated[
        str | None, typer.Option(help="The group, and so the pool; none for no group.  [default: default]")
    ] = None,
    permission_group: PermissionGroupOption = None,
    display_name: DisplayNameOption = None,
    email: EmailOption = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
    no_password: Annotated[bool, typer.Option("--no-password", help="Create the user without a password.")] = False,
) -> None:
    """Create a user."""
    if password_stdin and no_password:
        raise WrongUsage("--password-stdin and --no-password exclude each other")
    password = None
    if password_stdin or (terminal.is_interactive and not no_password):
        password = terminal.password(f"Password for {name}", from_stdin=password_stdin, confirm=True)
    with terminal.client() as client:
        view = client.people.create_user(
            name,
            password=password,
            role=role,
            group=None if group == NO_GROUP else group,
            in_no_group=group == NO_GROUP,
            permission_group=permission_group,
            display_name=display_name,
            email=email,
        )
    terminal.answer(view, f"Created {view['role']} {view['name']}.")
    if password is None:
        terminal.note(f"{name} cannot sign in without a password. Set one: corral user password {name}")


@command(
    user_app,
    "edit",
    examples=["corral user edit maria --permission-group students", "corral user edit maria --email maria@example.org"],
)
def edit_user(
    terminal: Terminal,
    name: UserArgument,
    permission_group: PermissionGroupOption = None,
    display_name: DisplayNameOption = None,
    email: EmailOption = None,
) -> None:
    """Change a user's profile or permission group. For the group: corral group add."""
    given = {"permission_group": permission_group, "display_name": display_name, "email": email}
    changes = given_fields(given)
    if not changes:
        raise WrongUsage("nothing to change", hint="Give --permission-group, --display-name or --email.")
    _edit(terminal, name, changes)


@command(user_app, "rm", examples=["corral user rm maria", "corral user rm -y maria sven"])
def delete_user(
    terminal: Terminal,
    names: Annotated[list[str], typer.Argument(metavar="USER", help="Names of users.")],
    yes: YesOption = False,
) -> None:
    """Delete users who have no active job; each gets its own result."""
    terminal.confirm(f"Delete {formats.count(len(names), 'user')}: {formats.listed(names)}?", assume_yes=yes)
    delete_each(
        terminal, names, lambda client, name: client.people.delete_user(name), lambda name: f"Deleted user {name}"
    )


@command(user_app, "role", examples=["corral user role maria operator", "corral user role -y maria scientist"])
def set_role(
    terminal: Terminal,
    name: UserArgument,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="scientist or operator.")],
    yes: YesOption = False,
) -> None:
    """Change a user's role."""
    rights = {
        "operator": f"Make {name} an operator, who manages users, pools and all jobs?",
        "scientist": f"Make {name} a scientist, who manages only their own jobs and data?",
    }
    if role not in rights:
        raise WrongUsage(f"{role!r} is not a role", hint="The roles are operator and scientist.")
    terminal.confirm(rights[role], assume_yes=yes, is_reversible=True)
    _edit(terminal, name, {"role": role})


@command(user_app, "disable", examples=["corral user disable maria"])
def disable(terminal: Terminal, name: UserArgument) -> None:
    """Stop a user from signing in; running jobs continue."""
    _edit(terminal, name, {"disabled": True})


@command(user_app, "enable", examples=["corral user enable maria"])
def enable(terminal: Terminal, name: UserArgument) -> None:
    """Let a disabled user sign in again."""
    _edit(terminal, name, {"disabled": False})


@command(
    user_app,
    "password",
    examples=["corral user password maria", 'echo "$PASSWORD" | corral user password maria --password-stdin'],
)
def set_password(
    terminal: Terminal,
    name: UserArgument,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
) -> None:
    """Give a user a new password."""
    password = terminal.password(f"New password for {name}", from_stdin=password_stdin, confirm=True)
    _edit(terminal, name, {"password": password})


def _edit(terminal: Terminal, name: str, changes: Mapping[str, Any]) -> None:
    with terminal.client() as client:
        view = client.people.edit_user(name, changes)
    sign_in = "disabled" if view["disabled"] else "may sign in"
    terminal.answer(view, f"{view['name']}: {view['role']}, {sign_in}")
