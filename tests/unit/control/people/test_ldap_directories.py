"""Directories as providers: valid settings, and the people who have left one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Invalid
from corral.control.people import groups
from corral.control.people.ldap_directories import FoundPerson, can_refresh, refresh
from corral.control.people.sign_in_providers import create_provider, edit_provider, is_allowed, remember, sign_in
from corral.control.people.user_accounts import create_user, edit_user
from corral.control.ports import Store
from corral.control.records import (
    CredentialKind,
    CredentialRecord,
    DirectoryRecord,
    IdentityRecord,
    ProviderKind,
    ProviderRecord,
    Role,
    UserRecord,
)
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ROOT, Desk

LAB = ProviderRecord(
    id="lab",
    kind=ProviderKind.LDAP,
    issuer="ldaps://ldap.example.org",
    client_id="cn=corral,dc=lab",
    client_secret="locked",
    enabled=True,
    allow=("*",),
    groups_claim="",
    directory=DirectoryRecord(base="dc=lab"),
)


def identity(login: str = "ann", **values: Any) -> IdentityRecord:
    return IdentityRecord(**{"provider": "lab", "subject": f"sub-{login}", "login": login, **values})


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    """An operator with a password, a directory, and ann who has signed in with it and has a session and a token."""
    desk = Desk(store)
    desk.do(create_user, ROOT, "root", password_hash="hash")
    desk.do(create_provider, ROOT, LAB)
    desk.do(sign_in, "", identity())
    with desk.store.write() as tx:
        for kind in CredentialKind:
            tx.credentials.add(CredentialRecord(id=f"c-{kind}", kind=kind, user="ann", secret_hash=f"h-{kind}"))
    return desk


def refreshed(desk: Desk, *found: FoundPerson, asked: tuple[str, ...] = ("sub-ann",)) -> list[str]:
    with desk.store.read() as tx:
        provider = tx.providers.get("lab")
    assert provider is not None
    return desk.do(refresh, provider, asked, found)


def user(desk: Desk, name: str = "ann") -> UserRecord:
    with desk.store.read() as tx:
        found = tx.people.user(name)
    assert found is not None
    return found


def credentials(desk: Desk, name: str = "ann") -> list[CredentialRecord]:
    with desk.store.read() as tx:
        return [item for kind in CredentialKind for item in tx.credentials.of_user(name, kind)]


def test_the_usual_settings_are_filled_in(staffed: Desk) -> None:
    with staffed.store.read() as tx:
        made = tx.providers.get("lab")
    assert made is not None
    assert (made.groups_claim, made.title) == ("memberOf", "lab")
    assert made.directory == DirectoryRecord(base="dc=lab")


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("issuer", {"issuer": "https://ldap.example.org"}),
        ("issuer", {"issuer": "ldap.example.org"}),
        ("issuer", {"issuer": "ldaps://"}),
        ("issuer", {"issuer": "ldaps://ldap.example.org/dc=lab"}),
        ("issuer", {"issuer": "ldaps://user@ldap.example.org"}),
        ("issuer", {"issuer": "ldaps://ldap.example.org:0x"}),
        ("client_id", {"client_secret": ""}),
        ("client_id", {"client_id": ""}),
        ("client_id", {"client_id": "cn=corral\n"}),
        ("organisation", {"organisation": "lab"}),
        ("api_token", {"api_token": "locked"}),
        ("groups_claim", {"groups_claim": "memberOf)(x=*"}),
        ("group_rules", {"group_rules": ("ml=nowhere",)}),
    ],
)
def test_settings_that_cannot_be_right_are_refused(desk: Desk, field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refusal:
        desk.do(create_provider, ROOT, replace(LAB, **changes))
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("base", {"base": ""}),
        ("base", {"base": "people"}),
        ("base", {"base": "dc=lab\n"}),
        ("group_base", {"group_base": "groups"}),
        ("login_attribute", {"login_attribute": "uid)(x"}),
        ("id_attribute", {"id_attribute": ""}),
        ("member_attribute", {"member_attribute": "member;x"}),
        ("bind_as", {"bind_as": "uid=ann,dc=lab"}),
        ("bind_as", {"bind_as": "{}{}"}),
        ("more_addresses", {"more_addresses": ("ldaps://a",) * 11}),
        ("refresh_minutes", {"refresh_minutes": 1}),
    ],
)
def test_settings_of_a_directory_are_checked(desk: Desk, field: str, settings: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refusal:
        desk.do(create_provider, ROOT, replace(LAB, directory=DirectoryRecord(**{"base": "dc=lab", **settings})))
    assert refusal.value.field == f"directory.{field}"


@pytest.mark.parametrize("address", ["ldap://ldap.example.org", "ldap://127.0.0.1.example.org", "ldap://10.0.0.1"])
def test_passwords_are_not_sent_unencrypted_by_mistake(desk: Desk, address: str) -> None:
    plain = DirectoryRecord(base="dc=lab", starttls=False)
    with pytest.raises(Invalid, match="unencrypted"):
        desk.do(create_provider, ROOT, replace(LAB, issuer=address, directory=plain))
    with pytest.raises(Invalid, match="unencrypted"):
        desk.do(create_provider, ROOT, replace(LAB, directory=replace(plain, more_addresses=(address,))))
    desk.do(create_provider, ROOT, replace(LAB, issuer=address))
    desk.do(create_provider, ROOT, replace(LAB, id="b", issuer=address, directory=replace(plain, allow_plain=True)))
    desk.do(create_provider, ROOT, replace(LAB, id="c", issuer="ldap://127.0.0.1:389", directory=plain))


def test_another_kind_has_no_directory(desk: Desk) -> None:
    with pytest.raises(Invalid, match="only a provider of the kind ldap"):
        desk.do(create_provider, ROOT, replace(LAB, kind=ProviderKind.OIDC, issuer="https://sso.example.org"))
    desk.do(create_provider, ROOT, ProviderRecord(id="hub", kind=ProviderKind.GITHUB, client_id="x"))
    with pytest.raises(Invalid, match="only a provider of the kind ldap"):
        desk.do(edit_provider, ROOT, "hub", {"directory": {"base": "dc=lab"}})


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "ldaps://evil.example.org"},
        {"directory": {"more_addresses": ("ldaps://evil.example.org",)}},
        {"directory": {"starttls": False}},
        {"directory": {"allow_plain": True}},
        {"directory": {"ca_certificate": "another"}},
    ],
)
def test_a_stored_password_is_not_sent_another_way(staffed: Desk, change: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="give client_secret again"):
        staffed.do(edit_provider, ROOT, "lab", change)
    changed = staffed.do(edit_provider, ROOT, "lab", {**change, "client_secret": "locked anew"})
    assert changed.directory is not None
    assert changed.directory.base == "dc=lab", "the other settings stay"


def test_only_logins_admit(staffed: Desk) -> None:
    lab = replace(LAB, allow=("ann", "@lab.org"))
    assert is_allowed(lab, identity("Ann"))
    assert not is_allowed(lab, identity("eve", email="eve@lab.org"))


def test_groups_are_named_in_any_spelling(staffed: Desk) -> None:
    staffed.do(groups.create, ROOT, "vision")
    staffed.do(edit_provider, ROOT, "lab", {"group_rules": ("CN=ML Team, DC=lab=vision",)})
    assert refreshed(staffed, FoundPerson(subject="sub-ann", member_of=("cn=ml team,dc=LAB",))) == ["ann"]
    assert user(staffed).group == "vision"
    assert refreshed(staffed, FoundPerson(subject="sub-ann", member_of=("cn=ml team,dc=LAB",))) == []


def test_a_person_who_has_left_is_signed_out_and_disabled(staffed: Desk) -> None:
    assert refreshed(staffed, asked=("sub-bob",)) == [], "ann was not asked for"
    assert len(credentials(staffed)) == 2
    assert refreshed(staffed) == ["ann"]
    assert user(staffed).disabled
    assert credentials(staffed) == []
    assert "user.left-directory" in [event.action for event in staffed.events()]
    assert refreshed(staffed) == []
    assert not user(staffed, "root").disabled


def test_an_answer_to_other_settings_changes_nothing(staffed: Desk) -> None:
    with staffed.store.read() as tx:
        before = tx.providers.get("lab")
    assert before is not None
    staffed.do(edit_provider, ROOT, "lab", {"directory": {"base": "ou=people,dc=lab"}})
    assert staffed.do(refresh, before, ["sub-ann"], []) == []
    assert not user(staffed).disabled


def test_a_person_who_is_back_is_enabled_by_signing_in(staffed: Desk) -> None:
    refreshed(staffed)
    staffed.do(remember, ROOT, "lab", [identity()])
    outcome = staffed.do(sign_in, "10.0.0.1", identity())
    assert outcome.user is not None
    assert not user(staffed).disabled
    assert "user.back-in-directory" in [event.action for event in staffed.events()]
    # The next time it is an operator who disables the user.
    staffed.do(edit_user, ROOT, "ann", disabled=True)
    assert staffed.do(sign_in, "10.0.0.1", identity()).is_disabled


def test_an_operator_takes_the_decision_over(staffed: Desk) -> None:
    refreshed(staffed)
    staffed.do(edit_user, ROOT, "ann", disabled=True)
    assert staffed.do(sign_in, "10.0.0.1", identity()).is_disabled


def test_the_last_operator_is_signed_out_but_not_disabled(staffed: Desk) -> None:
    staffed.do(edit_user, ROOT, "ann", role=Role.OPERATOR)
    staffed.do(edit_user, ROOT, "root", disabled=True)
    assert refreshed(staffed) == ["ann"]
    assert not user(staffed).disabled
    assert credentials(staffed) == []
    assert refreshed(staffed) == []


def test_people_are_looked_up_with_a_service_account_or_anonymously() -> None:
    assert can_refresh(LAB)
    nameless = replace(LAB, client_id="", client_secret="")
    assert can_refresh(nameless)
    assert not can_refresh(replace(nameless, directory=DirectoryRecord(base="dc=lab", bind_as="{}@lab")))
    assert not can_refresh(replace(LAB, directory=None))
