"""`corral provider add-ldap` and `edit-ldap`: directories (OpenLDAP, FreeIPA, Active Directory) as providers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.people.sign_in_providers import (
    AllowOption,
    GroupOption,
    GroupRuleOption,
    IdArgument,
    TitleOption,
    app,
    group_of,
    state_of,
)
from corral.cli.terminal.changes import check_changes, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, command

#: By the name for `--like`: the settings that fit a kind of directory.
LIKE: dict[str, dict[str, Any]] = {
    "openldap": {},
    "freeipa": {"id_attribute": "ipaUniqueID", "group_filter": "(objectClass=ipausergroup)"},
    "active-directory": {
        "user_filter": "(&(objectCategory=person)(objectClass=user))",
        "login_attribute": "sAMAccountName",
        "id_attribute": "objectGUID",
        "name_attribute": "displayName",
        "group_filter": "(objectClass=group)",
        "nested": True,
    },
}

AddressOption = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="ldaps://HOST or ldap://HOST; the next is asked if one fails."),
]
BaseOption = Annotated[str | None, typer.Option(metavar="DN", help="Where people are searched.")]
BindOption = Annotated[str | None, typer.Option("--bind-dn", metavar="DN", help="The name of the service account.")]
PasswordOption = Annotated[
    bool, typer.Option("--bind-password-stdin", help="Read the service account's password from a line of stdin.")
]
BindAsOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sign in as the person, with {} for the login, as {}@example.org."),
]
FilterOption = Annotated[str | None, typer.Option(metavar="FILTER", help="Which entries are people who may be found.")]
LoginOption = Annotated[str | None, typer.Option("--login-attribute", metavar="NAME", help="uid or sAMAccountName.")]
IdOption = Annotated[str | None, typer.Option("--id-attribute", metavar="NAME", help="entryUUID or objectGUID.")]
NameOption = Annotated[str | None, typer.Option("--name-attribute", metavar="NAME", help="cn or displayName.")]
MemberOfOption = Annotated[
    str | None, typer.Option("--member-of", metavar="NAME", help="The attribute of people with their groups.")
]
GroupBaseOption = Annotated[
    str | None, typer.Option(metavar="DN", help="Where groups are searched; those directly there have short names.")
]
GroupFilterOption = Annotated[str | None, typer.Option(metavar="FILTER", help="Which entries are groups.")]
MemberOption = Annotated[
    str | None, typer.Option("--member-attribute", metavar="NAME", help="member, uniqueMember or memberUid.")
]
NestedOption = Annotated[bool | None, typer.Option("--nested/--not-nested", help="Follow groups in groups.")]
CaOption = Annotated[
    Path | None, typer.Option("--ca-file", metavar="FILE", help="Trust the certificates in this PEM file only.")
]
StartTlsOption = Annotated[bool | None, typer.Option("--starttls/--no-starttls", help="Encrypt ldap:// by StartTLS.")]
PlainOption = Annotated[
    bool | None, typer.Option("--allow-plain/--refuse-plain", help="Allow passwords to be sent unencrypted.")
]
RefreshOption = Annotated[
    int | None, typer.Option("--refresh-minutes", metavar="N", help="How often people are looked up again.")
]


@command(
    app,
    "add-ldap",
    examples=[
        'echo "$PASSWORD" | corral provider add-ldap lab --address ldaps://ldap.example.org '
        "--base ou=people,dc=example,dc=org --bind-dn cn=corral,dc=example,dc=org --bind-password-stdin",
        'echo "$PASSWORD" | corral provider add-ldap corp --like active-directory --address ldaps://dc1.example.org '
        "--base dc=example,dc=org --bind-dn corral@example.org --bind-password-stdin --group-base ou=hpc,dc=example",
    ],
)
def add_ldap(
    terminal: Terminal,
    id: IdArgument,
    address: Annotated[
        list[str],
        typer.Option(metavar="URL", help="ldaps://HOST or ldap://HOST; the next is asked if one fails."),
    ],
    base: Annotated[str, typer.Option(metavar="DN", help="Where people are searched.")],
    like: Annotated[str, typer.Option(help="openldap, freeipa or active-directory.")] = "openldap",
    bind_dn: BindOption = None,
    bind_password_stdin: PasswordOption = False,
    bind_as: BindAsOption = None,
    title: TitleOption = None,
    user_filter: FilterOption = None,
    login_attribute: LoginOption = None,
    id_attribute: IdOption = None,
    name_attribute: NameOption = None,
    member_of: MemberOfOption = None,
    group_base: GroupBaseOption = None,
    group_filter: GroupFilterOption = None,
    member_attribute: MemberOption = None,
    nested: NestedOption = None,
    ca_file: CaOption = None,
    starttls: StartTlsOption = None,
    allow_plain: PlainOption = None,
    refresh_minutes: RefreshOption = None,
    allow: AllowOption = None,
    group: GroupOption = None,
    group_rule: GroupRuleOption = None,
    enable: Annotated[bool, typer.Option("--enable", help="Enable the provider at once.")] = False,
) -> None:
    """Add a directory (LDAP): people sign in with its passwords. It is disabled until you enable it after a test."""
    if like not in LIKE:
        raise WrongUsage(f"--like: {like!r} is none of {', '.join(LIKE)}")
    settings = LIKE[like] | _settings(
        address,
        base,
        bind_as,
        user_filter,
        login_attribute,
        id_attribute,
        name_attribute,
        group_base,
        group_filter,
        member_attribute,
        nested,
        ca_file,
        starttls,
        allow_plain,
        refresh_minutes,
    )
    body: dict[str, Any] = {"id": id, "kind": "ldap", "issuer": address[0], "enabled": enable, "directory": settings}
    body |= _provider_fields(title, bind_dn, member_of, allow, group, group_rule)
    if bind_dn is not None:
        body["client_secret"] = terminal.password("Password of the service account", from_stdin=bind_password_stdin)
    with terminal.client() as client:
        view = client.providers.create(body)
    terminal.answer(view, f"Added directory {view['id']} ({state_of(view)}).")
    if not view["enabled"]:
        terminal.note(f"Next: corral provider test {id}, then corral provider enable {id}")


@command(
    app,
    "edit-ldap",
    examples=[
        "corral provider edit-ldap lab --group-base ou=groups,dc=example,dc=org --group-rule ml=vision",
        'echo "$PASSWORD" | corral provider edit-ldap lab --bind-password-stdin --address ldaps://ldap2.example.org',
    ],
)
def edit_ldap(
    terminal: Terminal,
    id: IdArgument,
    address: AddressOption = None,
    base: BaseOption = None,
    bind_dn: BindOption = None,
    bind_password_stdin: PasswordOption = False,
    bind_as: BindAsOption = None,
    title: TitleOption = None,
    user_filter: FilterOption = None,
    login_attribute: LoginOption = None,
    id_attribute: IdOption = None,
    name_attribute: NameOption = None,
    member_of: MemberOfOption = None,
    group_base: GroupBaseOption = None,
    group_filter: GroupFilterOption = None,
    member_attribute: MemberOption = None,
    nested: NestedOption = None,
    ca_file: CaOption = None,
    starttls: StartTlsOption = None,
    allow_plain: PlainOption = None,
    refresh_minutes: RefreshOption = None,
    allow: AllowOption = None,
    group: GroupOption = None,
    group_rule: GroupRuleOption = None,
) -> None:
    """Change a directory. Options that are not given stay as they are. A new address or certificate needs the password
    of the service account again."""
    settings = _settings(
        address,
        base,
        bind_as,
        user_filter,
        login_attribute,
        id_attribute,
        name_attribute,
        group_base,
        group_filter,
        member_attribute,
        nested,
        ca_file,
        starttls,
        allow_plain,
        refresh_minutes,
    )
    changes = _provider_fields(title, bind_dn, member_of, allow, group, group_rule)
    if address:
        changes["issuer"] = address[0]
    if settings:
        changes["directory"] = settings
    if bind_password_stdin:
        changes["client_secret"] = terminal.password("Password of the service account", from_stdin=True)
    check_changes(changes, "provider edit-ldap")
    with terminal.client() as client:
        view = client.providers.edit(id, changes)
    terminal.answer(view, f"{view['id']}: {state_of(view)}")


def _settings(
    addresses: list[str] | None,
    base: str | None,
    bind_as: str | None,
    user_filter: str | None,
    login_attribute: str | None,
    id_attribute: str | None,
    name_attribute: str | None,
    group_base: str | None,
    group_filter: str | None,
    member_attribute: str | None,
    nested: bool | None,
    ca_file: Path | None,
    starttls: bool | None,
    allow_plain: bool | None,
    refresh_minutes: int | None,
) -> dict[str, Any]:
    """The settings of the directory that are given."""
    values: dict[str, Any] = {
        "more_addresses": addresses[1:] if addresses else None,
        "base": base,
        "bind_as": bind_as,
        "user_filter": user_filter,
        "login_attribute": login_attribute,
        "id_attribute": id_attribute,
        "name_attribute": name_attribute,
        "group_base": group_base,
        "group_filter": group_filter,
        "member_attribute": member_attribute,
        "nested": nested,
        "ca_certificate": None if ca_file is None else _certificate(ca_file),
        "starttls": starttls,
        "allow_plain": allow_plain,
        "refresh_minutes": refresh_minutes,
    }
    return given_fields(values)


def _provider_fields(
    title: str | None,
    bind_dn: str | None,
    member_of: str | None,
    allow: list[str] | None,
    group: str | None,
    group_rules: list[str] | None,
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "title": title,
        "client_id": bind_dn,
        "groups_claim": member_of,
        "allow": allow,
        "group_rules": group_rules,
    }
    given = given_fields(values)
    return given if group is None else {**given, "group": group_of(group)}


def _certificate(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"--ca-file: {path} cannot be read: {error}", hint="Give a PEM file.") from None
