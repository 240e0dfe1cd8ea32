"""`corral provider`: sign-in with GitHub, GitLab or any OIDC provider, and on-boarding of its users (operators)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.client.views import IdentityView, ProviderDetailView

app = typer.Typer(help="Manage sign-in providers and on-board their people (operators).", no_args_is_help=True)

NO_GROUP = "none"

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A provider's id, from `corral provider ls`.")]
KindOption = Annotated[str, typer.Option(help="github, gitlab or oidc.")]
TitleOption = Annotated[str | None, typer.Option(help="The text of the button.  [default: the id]")]
IssuerOption = Annotated[
    str | None, typer.Option(metavar="URL", help="The provider's address; github.com and gitlab.com need none.")
]
ClientOption = Annotated[str | None, typer.Option(metavar="ID", help="The client id that the provider gave out.")]
SecretOption = Annotated[
    bool, typer.Option("--client-secret-stdin", help="Read the client secret from a line of stdin.")
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(metavar="WHO", help="A login, e-mail address, @domain, or * that may sign in; repeatable."),
]
GroupOption = Annotated[str | None, typer.Option(help="The group of new users, or the word none.  [default: default]")]
GroupsClaimOption = Annotated[
    str | None,
    typer.Option(
        metavar="CLAIM", help="The claim with the groups of a person, as realm_access.roles.  [default: groups]"
    ),
]
GroupRuleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group-rule",
        metavar="THEIRS=GROUP",
        help="Members of a group of the provider are put into GROUP, or are operators (THEIRS=@operator); repeatable.",
    ),
]
OrganisationOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="A GitHub organisation or GitLab group whose members are listed.")
]
ApiTokenOption = Annotated[
    bool, typer.Option("--api-token-stdin", help="Read a token for listing members from a line of stdin.")
]


@command(app, "ls", examples=["corral provider ls", "corral provider ls -o json"])
def list_providers(terminal: Terminal) -> None:
    """List the sign-in providers."""
    with terminal.client() as client:
        found = list(client.providers.list())
    terminal.table(
        ("ID", "KIND", "STATE", "USERS>", "TITLE~", "ISSUER~?", "ALLOW~?"),
        found,
        lambda view: (
            view["id"],
            view["kind"],
            state_of(view),
            str(view["users"]),
            view["title"],
            view["issuer"],
            formats.listed(view["allow"]),
        ),
        empty="No sign-in providers: people sign in with a password. Create one: corral provider create --help",
    )


@command(
    app,
    "create",
    examples=[
        'echo "$SECRET" | corral provider create github --kind github --client-id Ov23li… --client-secret-stdin',
        "corral provider create sso --kind oidc --issuer https://sso.example.org --client-id corral --allow @lab.org",
    ],
)
def create_provider(
    terminal: Terminal,
    id: IdArgument,
    kind: KindOption,
    client_id: Annotated[str, typer.Option(metavar="ID", help="The client id that the provider gave out.")],
    issuer: IssuerOption = None,
    title: TitleOption = None,
    client_secret_stdin: SecretOption = False,
    no_client_secret: Annotated[bool, typer.Option("--no-client-secret", help="The client has none.")] = False,
    allow: AllowOption = None,
    group: GroupOption = None,
    groups_claim: GroupsClaimOption = None,
    group_rule: GroupRuleOption = None,
    organisation: OrganisationOption = None,
    api_token_stdin: ApiTokenOption = False,
    enable: Annotated[bool, typer.Option("--enable", help="Enable the provider at once.")] = False,
) -> None:
    """Create a provider. It is disabled until you enable it after a test."""
    if client_secret_stdin and no_client_secret:
        raise WrongUsage("--client-secret-stdin and --no-client-secret exclude each other")
    ask = client_secret_stdin or (terminal.is_interactive and not no_client_secret)
    body: dict[str, Any] = {"id": id, "kind": kind, "client_id": client_id, "enabled": enable}
    if ask:
        body["client_secret"] = terminal.password("Client secret", from_stdin=client_secret_stdin)
    body.update(_given(terminal, issuer, title, allow, group, groups_claim, group_rule, organisation, api_token_stdin))
    with terminal.client() as client:
        view = client.providers.create(body)
    terminal.answer(view, f"Created provider {view['id']} ({state_of(view)}).")
    terminal.note(f"The provider must know this redirect URI: {view['redirect_uri']}")
    if not view["enabled"]:
        terminal.note(f"Next: corral provider test {id}, then corral provider enable {id}")


@command(
    app,
    "edit",
    examples=[
        "corral provider edit sso --allow @example.org --allow maria",
        "corral provider edit sso --group-rule ml-team=vision --group-rule admins=@operator",
        'echo "$SECRET" | corral provider edit sso --client-secret-stdin',
    ],
)
def edit_provider(
    terminal: Terminal,
    id: IdArgument,
    client_id: ClientOption = None,
    issuer: IssuerOption = None,
    title: TitleOption = None,
    client_secret_stdin: SecretOption = False,
    allow: AllowOption = None,
    clear_allow: Annotated[bool, typer.Option("--allow-nobody", help="Empty the allow-list.")] = False,
    group: GroupOption = None,
    groups_claim: GroupsClaimOption = None,
    group_rule: GroupRuleOption = None,
    clear_rules: Annotated[bool, typer.Option("--no-group-rules", help="Remove the rules.")] = False,
    organisation: OrganisationOption = None,
    api_token_stdin: ApiTokenOption = False,
) -> None:
    """Change a provider. Options that are not given stay as they are, also the secrets."""
    changes: dict[str, Any] = {}
    if client_id is not None:
        changes["client_id"] = client_id
    if client_secret_stdin:
        changes["client_secret"] = terminal.password("Client secret", from_stdin=True)
    lists = ([] if clear_allow else allow, [] if clear_rules else group_rule)
    changes.update(
        _given(terminal, issuer, title, lists[0], group, groups_claim, lists[1], organisation, api_token_stdin)
    )
    check_changes(changes, "provider edit")
    _edit(terminal, id, changes)


@command(app, "enable", examples=["corral provider enable github"])
def enable(terminal: Terminal, id: IdArgument) -> None:
    """Let people sign in with a provider."""
    _edit(terminal, id, {"enabled": True})


@command(app, "disable", examples=["corral provider disable github"])
def disable(terminal: Terminal, id: IdArgument) -> None:
    """Stop sign-in with a provider; users who are signed in stay signed in."""
    _edit(terminal, id, {"enabled": False})


@command(app, "test", examples=["corral provider test github"])
def test_provider(terminal: Terminal, id: IdArgument) -> None:
    """Check a provider's settings, as far as that is possible without a sign-in."""
    with terminal.client() as client:
        report = client.providers.test(id)
    if terminal.as_json:
        terminal.json(report)
    else:
        terminal.table(
            ("CHECK", "STATE!", "FOUND~", "WHAT TO DO~"),
            report["checks"],
            lambda check: (check["name"], check["state"], check["detail"], check["hint"]),
            empty="Nothing was checked.",
        )
    if not report["ok"]:
        raise typer.Exit(1)


@command(app, "people", examples=["corral provider people github --refresh"])
def people(
    terminal: Terminal,
    id: IdArgument,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask the provider for its members first.")] = False,
) -> None:
    """List people that can be on-boarded: members that the provider lists, and people who tried to sign in."""
    with terminal.client() as client:
        found = list(client.providers.people(id, refresh=refresh))
    now = terminal.now()
    terminal.table(
        ("LOGIN", "USER", "NAME~", "E-MAIL~", "TRIED", "SUBJECT~?"),
        found,
        lambda view: (
            view["login"],
            view["user"] or formats.NOTHING,
            view["name"],
            view["email"],
            formats.ago(view["seen_at"], now) if view["seen_at"] else "never",
            view["subject"],
        ),
        empty="No people yet. Let people try to sign in, or give the provider an organisation and an API token.",
    )


@command(
    app,
    "onboard",
    examples=[
        "corral provider onboard github maria sven --group vision",
        "corral provider onboard sso maria --operator maria",
    ],
)
def onboard(
    terminal: Terminal,
    id: IdArgument,
    logins: Annotated[list[str], typer.Argument(metavar="WHO", help="Logins or subjects from `provider people`.")],
    group: GroupOption = None,
    operator: Annotated[
        list[str] | None, typer.Option("--operator", metavar="WHO", help="One of them becomes an operator; repeatable.")
    ] = None,
) -> None:
    """Create users for people of a provider, all of them or none."""
    with terminal.client() as client:
        people = list(client.providers.people(id))
        made = client.providers.onboard(
            id,
            _subjects(people, logins),
            group=group_of(group or "default"),
            operators=_subjects(people, operator or ()),
        )
        known = next((provider for provider in client.providers.list() if provider["id"] == id), None)
    if terminal.as_json:
        terminal.json({"items": list(made)})
    else:
        for view in made:
            terminal.say(f"On-boarded {view['name']} ({view['role']}).")
    if known is not None and not known["has_operator"] and all(view["role"] != "operator" for view in made):
        terminal.note(
            f"No operator has signed in with {id} yet. To make one: corral user role {made[0]['name']} operator"
        )


@command(app, "rm", examples=["corral provider rm github"])
def delete_provider(
    terminal: Terminal,
    id: IdArgument,
    yes: YesOption = False,
) -> None:
    """Delete a provider. Its users stay, but are signed out and need a password."""
    terminal.confirm(
        f"Delete provider {id}? Its users are signed out and need a password to come back.", assume_yes=yes
    )
    with terminal.client() as client:
        client.providers.delete(id)
    terminal.answer({"id": id, "deleted": True}, f"Deleted provider {id}")


def _given(
    terminal: Terminal,
    issuer: str | None,
    title: str | None,
    allow: list[str] | None,
    group: str | None,
    groups_claim: str | None,
    group_rules: list[str] | None,
    organisation: str | None,
    api_token_stdin: bool,
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "issuer": issuer,
        "title": title,
        "allow": allow,
        "groups_claim": groups_claim,
        "group_rules": group_rules,
        "organisation": organisation,
    }
    given = given_fields(values)
    if group is not None:
        given["group"] = group_of(group)
    if api_token_stdin:
        given["api_token"] = terminal.password("API token", from_stdin=True)
    return given


def group_of(text: str) -> str | None:
    return None if text == NO_GROUP else text


def _edit(terminal: Terminal, id: str, changes: dict[str, Any]) -> None:
    with terminal.client() as client:
        view = client.providers.edit(id, changes)
    terminal.answer(view, f"{view['id']}: {state_of(view)}")


def state_of(view: ProviderDetailView) -> str:
    return "enabled" if view["enabled"] else "disabled"


def _subjects(known: Sequence[IdentityView], wanted: Sequence[str]) -> list[str]:
    """The subjects of logins and subjects; a login must belong to one person."""
    subjects = {item["subject"] for item in known}
    found = []
    for name in wanted:
        of_login = [item["subject"] for item in known if item["login"].casefold() == name.casefold()]
        if name in subjects or not of_login:
            found.append(name)  # the server reports unknown subjects
        elif len(of_login) == 1:
            found.append(of_login[0])
        else:
            raise WrongUsage(f"{len(of_login)} people have the login {name!r}", hint="Name them by their subject.")
    return found
