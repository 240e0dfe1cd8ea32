"""`corral login`, `logout`, `whoami`, `profile`, `passwd` and `token`: your own account."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, YesOption, command
from corral.client.http.errors import ApiProblem, ClientError

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import LoginView

app = typer.Typer()
token_app = typer.Typer(help="Manage your own API tokens.", no_args_is_help=True)


@command(
    app,
    "login",
    section=Section.PEOPLE,
    examples=[
        "corral login --user maria",
        'echo "$PASSWORD" | corral login --user operator --password-stdin',
        "printf 'one-time\\nnew\\n' | corral login --user operator --password-stdin",
        "corral login --server http://gpu-head:8470 --user maria",
        "corral login --provider lab --user maria",
    ],
)
def login(
    terminal: Terminal,
    user: Annotated[str | None, typer.Option(help="Your user name; asked for if not given.")] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="ID", help="The directory with your password, as the sign-in page names it.")
    ] = None,
    password_stdin: Annotated[
        bool,
        typer.Option(
            "--password-stdin", help="Read the password from stdin; after a one-time password also your new one."
        ),
    ] = False,
) -> None:
    """Sign in: a token for this server is stored for the next commands, readable by you only.

    A one-time password gives no token: you are asked for your own password, which replaces it.
    """
    from corral.client.http.credentials import Credential

    if user is None:
        if not terminal.is_interactive:
            raise WrongUsage("--user: the user name is missing", hint="corral login --user NAME --password-stdin")
        user = str(typer.prompt("User", err=True))
    store = terminal.credentials()
    with terminal.client(anonymous=True) as client:
        # a broken file must be found before the server creates a token that could not be stored
        before = store.get(client.server)
        password = terminal.password("Password", from_stdin=password_stdin)
        view = _signed_in(terminal, client, user, password, provider, from_stdin=password_stdin)
        token = view["token"]
        assert token is not None, "a sign-in with a token name is answered with a token"
        store.put(client.server, Credential(user=view["user"], token=token))
        server = client.server
    if before is not None:
        # the replaced token is not needed any more; if it cannot be revoked, it expires
        with contextlib.suppress(ClientError), terminal.client(token=before.token) as old:
            old.people.logout()
    terminal.answer(
        {"server": server, "user": view["user"], "role": view["role"], "stored_in": str(store.path)},
        f"Signed in to {server} as {view['user']} ({view['role']}).",
    )


def _signed_in(
    terminal: Terminal, client: Client, user: str, password: str, provider: str | None, *, from_stdin: bool
) -> LoginView:
    """Asks for a new password if the given one is a one-time password."""
    token_name = f"cli on {os.uname().nodename}"[:60]
    try:
        return client.people.login(user, password, token_name=token_name, provider=provider)
    except ApiProblem as problem:
        if problem.slug != "password-change-required":
            raise
    terminal.note("This is a one-time password: choose your own.")
    try:
        new = terminal.password("New password", from_stdin=from_stdin, confirm=True)
    except WrongUsage as missing:
        both = f"printf 'one-time\\nnew\\n' | corral login --user {user} --password-stdin"
        raise WrongUsage("the new password is missing", hint=f"Pipe in both passwords: {both}") from missing
    return client.people.login(user, password, token_name=token_name, new_password=new)


@command(app, "logout", section=Section.PEOPLE, examples=["corral logout"])
def logout(terminal: Terminal) -> None:
    """Sign out: the stored token is revoked and deleted."""
    from corral.client.http.transport import server_address

    server = server_address(terminal.server)
    removed = terminal.credentials().remove(server)
    if removed is None:
        terminal.answer({"server": server, "signed_out": False}, f"You were not signed in to {server}.")
        return
    try:
        with terminal.client(token=removed.token) as client:
            client.people.logout()
    except ClientError as error:
        terminal.note(f"The stored token is deleted, but could not be revoked: {error.message}")
    terminal.answer({"server": server, "signed_out": True}, f"Signed out of {server}.")


@command(app, "whoami", section=Section.PEOPLE, examples=["corral whoami", "corral whoami -o json"])
def whoami(terminal: Terminal) -> None:
    """Show who you are signed in as."""
    with terminal.client() as client:
        me, server = client.people.me(), client.server
    terminal.answer({**me, "server": server}, f"{me['name']} ({me['role']}) on {server}")
    if me["must_change_password"]:
        terminal.note("This is a one-time password. Set your own: corral passwd")


@command(
    app,
    "profile",
    section=Section.PEOPLE,
    examples=["corral profile", 'corral profile --display-name "Maria Muster" --email maria@example.org'],
)
def profile(
    terminal: Terminal,
    display_name: Annotated[str | None, typer.Option(help="Your name, as other users see it.")] = None,
    email: Annotated[str | None, typer.Option(help="Your e-mail address.")] = None,
) -> None:
    """Show your account and your permissions; change your name and e-mail address."""
    changes = {key: value for key, value in (("display_name", display_name), ("email", email)) if value is not None}
    with terminal.client() as client:
        me = client.people.edit_me(changes) if changes else client.people.me()
    terminal.facts(
        me,
        (
            ("User", me["name"]),
            ("Name", me["display_name"]),
            ("E-mail", me["email"]),
            ("Role", me["role"]),
            ("Group", me["group"] or "in no group"),
            ("Pool", me["pool"] or "none: your jobs get no GPUs"),
            ("Permission group", me["permission_group"]),
            ("May", formats.listed(me["functions"])),
            ("Signs in with", me["provider"]),
        ),
    )


@command(
    app,
    "passwd",
    section=Section.PEOPLE,
    examples=["corral passwd", "printf 'old\\nnew\\n' | corral passwd --password-stdin --revoke-tokens"],
)
def passwd(
    terminal: Terminal,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the old and the new password from stdin, one line each.")
    ] = False,
    revoke_tokens: Annotated[
        bool | None,
        typer.Option(
            "--revoke-tokens/--keep-tokens", help="Whether to revoke your other tokens, too; asked for if not given."
        ),
    ] = None,
) -> None:
    """Change your own password. All your browser sessions end; your other tokens if you want."""
    old = terminal.password("Old password", from_stdin=password_stdin)
    new = terminal.password("New password", from_stdin=password_stdin, confirm=True)
    if revoke_tokens is None:
        can_ask = terminal.is_interactive and not password_stdin
        revoke_tokens = can_ask and typer.confirm("Revoke all your other tokens, too?", err=True)
    with terminal.client() as client:
        client.people.change_password(old=old, new=new, revoke_tokens=revoke_tokens)
    end = "Your sessions and other tokens have ended." if revoke_tokens else "Your sessions have ended."
    terminal.answer({"changed": True, "revoked_tokens": revoke_tokens}, f"Password changed. {end}")


@command(token_app, "ls", examples=["corral token ls"])
def list_tokens(terminal: Terminal) -> None:
    """List your tokens."""
    with terminal.client() as client:
        found = list(client.people.tokens())
    now = terminal.now()
    terminal.table(
        ("ID", "NAME~", "SCOPE", "CREATED", "EXPIRES", "LAST USED"),
        found,
        lambda view: (
            view["id"],
            view["name"],
            formats.listed(view["scopes"]),
            formats.ago(view["created_at"], now),
            formats.ago(view["expires_at"], now) if view["expires_at"] else "never",
            formats.ago(view["last_used_at"], now) if view["last_used_at"] else "never",
        ),
        empty="No tokens. Create one: corral token create NAME",
    )


@command(
    token_app,
    "create",
    examples=["corral token create ci --scope jobs --expires 90d", "corral token create dashboard --scope read"],
)
def create_token(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="read, jobs (submit and change jobs) or full (the default).")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long the token is valid, such as 90d.")
    ] = None,
    expires_in_days: Annotated[int | None, typer.Option(min=1, metavar="N", help="The same in days.")] = None,
) -> None:
    """Create a token for a program. It is shown once."""
    if expires is not None and expires_in_days is not None:
        raise WrongUsage("--expires and --expires-in-days exclude each other")
    days = expires_in_days if expires is None else _days(expires)
    with terminal.client() as client:
        view = client.people.create_token(name, scopes=scope or (), expires_in_days=days)
    terminal.answer(view, view["token"])
    terminal.note(f"Token {view['id']} ({view['name']}). It is not shown again; use it as CORRAL_TOKEN or --token.")


def _days(text: str) -> float:
    from corral.core.quantities import parse_duration

    try:
        return parse_duration(text) / 86400
    except ValueError as error:
        raise WrongUsage(f"--expires: {error}") from error


@command(token_app, "rm", examples=["corral token rm t-3", "corral token rm -y t-3"])
def delete_token(
    terminal: Terminal,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="A token's id, from `corral token ls`.")],
    yes: YesOption = False,
) -> None:
    """Revoke a token."""
    terminal.confirm(f"Revoke token {token_id}?", assume_yes=yes)
    with terminal.client() as client:
        client.people.delete_token(token_id)
    terminal.answer({"id": token_id, "deleted": True}, f"Revoked token {token_id}")
