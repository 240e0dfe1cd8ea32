"""API schemas: the settings of a directory (LDAP)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from corral.control.people.ldap_directories import LEAST_REFRESH_MINUTES, MAX_ADDRESSES, MOST_REFRESH_MINUTES
from corral.control.records import DirectoryRecord
from corral.server.schemas.base import Body, Label, Text, View

#: The name of an entry or a place in a directory.
Name = Annotated[Text, Field(max_length=1000)]
Filter = Annotated[Text, Field(max_length=1000, examples=["(objectClass=inetOrgPerson)"])]
Address = Annotated[Text, Field(max_length=1000)]

_DEFAULT = DirectoryRecord()


class LdapSettingsBody(Body):
    """Settings that are left out keep their values; those of a new directory fit OpenLDAP."""

    base: Name = Field(default="", description="Where people are searched, as `ou=people,dc=example,dc=org`.")
    user_filter: Filter = Field(default=_DEFAULT.user_filter, description="The filter of entries that are people.")
    login_attribute: Label = Field(
        default=_DEFAULT.login_attribute, description="`uid`, or `sAMAccountName` in Active Directory."
    )
    id_attribute: Label = Field(
        default=_DEFAULT.id_attribute,
        description="An id that never changes: `entryUUID`, or `objectGUID` in Active Directory.",
    )
    name_attribute: Label = _DEFAULT.name_attribute
    email_attribute: Label = _DEFAULT.email_attribute
    bind_as: Name = Field(
        default="",
        description="The name to sign in to the directory with as the person, with `{}` in the place of the login "
        "(`{}@example.org`). Without it the service account searches for the person.",
    )
    group_base: Name = Field(
        default="",
        description="Where groups with the person as a member are searched; groups directly below it have short names.",
    )
    group_filter: Filter = _DEFAULT.group_filter
    member_attribute: Label = Field(
        default=_DEFAULT.member_attribute,
        description="The attribute of a group with its members; `memberUid` has logins.",
    )
    nested: bool = Field(default=False, description="Members of groups in a group are members of this group, too.")
    more_addresses: list[Address] = Field(
        default_factory=list,
        max_length=MAX_ADDRESSES,
        description="Copies of the directory, asked in this order if `issuer` does not answer.",
    )
    starttls: bool = Field(default=True, description="Encrypt connections to `ldap://` addresses by StartTLS.")
    allow_plain: bool = Field(
        default=False,
        description="Allow `ldap://` without StartTLS to another machine: passwords can be read on the way.",
    )
    ca_certificate: Annotated[Text, Field(max_length=100_000)] = Field(
        default="", description="The certificates (PEM) that alone are trusted; empty for those of the machine."
    )
    refresh_minutes: int = Field(
        default=_DEFAULT.refresh_minutes,
        ge=LEAST_REFRESH_MINUTES,
        le=MOST_REFRESH_MINUTES,
        description="Time between two look-ups of the users. Those who have left lose sessions and tokens.",
    )

    def given(self) -> dict[str, Any]:
        """The settings that are given, as the record has them."""
        values = self.model_dump(exclude_unset=True)
        if "more_addresses" in values:
            values["more_addresses"] = tuple(values["more_addresses"])
        return values


class LdapSettingsView(View):
    """The settings of a directory."""

    base: str
    user_filter: str
    login_attribute: str
    id_attribute: str
    name_attribute: str
    email_attribute: str
    bind_as: str
    group_base: str
    group_filter: str
    member_attribute: str
    nested: bool
    more_addresses: list[str]
    starttls: bool
    allow_plain: bool
    ca_certificate: str
    refresh_minutes: int


def ldap_settings_view(directory: DirectoryRecord | None) -> LdapSettingsView | None:
    if directory is None:
        return None
    return LdapSettingsView(**{**asdict(directory), "more_addresses": list(directory.more_addresses)})
