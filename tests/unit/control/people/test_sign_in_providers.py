"""Sign-in providers: what is a valid one, who comes in, under which name, and who can still operate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Forbidden, InUse, Invalid, NotFound, Taken, WrongState
from corral.control.people import groups
from corral.control.people.sign_in_providers import (
    create_provider,
    delete_provider,
    edit_provider,
    has_operator,
    is_allowed,
    known_people,
    name_for,
    on_board,
    remember,
    sign_in,
)
from corral.control.people.user_accounts import create_user, delete_user, edit_user
from corral.control.ports import Store
from corral.control.records import CredentialKind, CredentialRecord, IdentityRecord, ProviderKind, ProviderRecord, Role
from corral.core.snapshot.journal import digest_of
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, ROOT, Desk, draft

LAB = ProviderRecord(
    id="lab", kind=ProviderKind.OIDC, issuer="https://sso.example.org", client_id="corral", client_secret="locked"
)


def identity(login: str = "ann", **values: Any) -> IdentityRecord:
    return IdentityRecord(**{"provider": "lab", "subject": f"sub-{login}", "login": login, **values})


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    """An operator with a password, and a provider that is switched on."""
    desk = Desk(store)
    desk.do(create_user, ROOT, "root", password_hash="hash")
    desk.do(create_provider, ROOT, replace(LAB, enabled=True))
    return desk


def provider(desk: Desk) -> ProviderRecord | None:
    with desk.store.read() as tx:
        return tx.providers.get("lab")


# ------------------------------------------------------------------------------------------------ providers


def test_the_well_known_ones_need_no_address(desk: Desk) -> None:
    for kind, issuer in ((ProviderKind.GITHUB, "https://github.com"), (ProviderKind.GITLAB, "https://gitlab.com")):
        made = desk.do(create_provider, ROOT, ProviderRecord(id=kind.value, kind=kind, client_id="x"))
        assert (made.issuer, made.title, made.enabled) == (issuer, kind.value, False)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("id", {"id": "local"}),
        ("id", {"id": "Lab"}),
        ("id", {"id": "providers"}),
        ("issuer", {"issuer": ""}),
        ("issuer", {"issuer": "http://sso.example.org"}),
        ("issuer", {"issuer": "ftp://sso.example.org"}),
        ("issuer", {"issuer": "https://user:pass@sso.example.org"}),
        ("issuer", {"issuer": "https://sso.example.org?x=1"}),
        ("issuer", {"issuer": "https://sso.example.org:99999"}),
        ("issuer", {"issuer": "https://[::1"}),
        ("client_id", {"client_id": ""}),
        ("client_id", {"client_id": "two words"}),
        ("organisation", {"organisation": "lab"}),
        ("api_token", {"api_token": "locked"}),
        ("allow", {"allow": ("",)}),
        ("allow", {"allow": ("@",)}),
        ("allow", {"allow": ("two words",)}),
        ("group", {"group": "nowhere"}),
    ],
)
def test_invalid_provider_is_refused(desk: Desk, field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refusal:
        desk.do(create_provider, ROOT, replace(LAB, **changes))
    assert refusal.value.field == field
    assert provider(desk) is None


def test_only_operators_and_only_once(staffed: Desk) -> None:
    with pytest.raises(Taken):
        staffed.do(create_provider, ROOT, LAB)
    for act in (
        lambda work: create_provider(work, ANN, replace(LAB, id="other")),
        lambda work: edit_provider(work, ANN, "lab", {"title": "x"}),
        lambda work: delete_provider(work, ANN, "lab"),
        lambda work: on_board(work, ANN, "lab", ["x"], None),
        lambda work: remember(work, ANN, "lab", []),
    ):
        with pytest.raises(Forbidden):
            staffed.do(act)
    with pytest.raises(NotFound):
        staffed.do(edit_provider, ROOT, "other", {})


def test_an_edit_leaves_secrets_alone_and_the_log_never_sees_them(staffed: Desk) -> None:
    edited = staffed.do(edit_provider, ROOT, "lab", {"title": "Lab", "allow": ("ann", "ann", "@example.org")})
    assert (edited.client_secret, edited.allow) == ("locked", ("ann", "@example.org"))
    staffed.do(edit_provider, ROOT, "lab", {"enabled": False})
    staffed.do(edit_provider, ROOT, "lab", {"enabled": True})
    assert staffed.actions("lab") == ["provider.created", "provider.edited", "provider.disabled", "provider.enabled"]
    assert "locked" not in str(staffed.events())


def test_another_issuer_gets_neither_the_secret_nor_the_users(staffed: Desk) -> None:
    moved = {"issuer": "https://other.example.org"}
    with pytest.raises(Invalid) as refusal:
        staffed.do(edit_provider, ROOT, "lab", moved)
    assert refusal.value.field == "client_secret"
    staffed.do(edit_provider, ROOT, "lab", {**moved, "client_secret": "locked anew"})
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",)})
    staffed.do(sign_in, "", identity())
    with pytest.raises(WrongState, match="1 user comes from"):
        staffed.do(edit_provider, ROOT, "lab", {"issuer": LAB.issuer, "client_secret": "x"})


# ------------------------------------------------------------------------------------------------ coming in


def test_a_person_who_is_not_on_the_list_is_remembered(staffed: Desk) -> None:
    staffed.now = 2000.0
    outcome = staffed.do(sign_in, "10.0.0.1", identity("eve"))
    assert (outcome.user, outcome.is_new) == (None, False)
    with staffed.store.read() as tx:
        (kept,) = known_people(tx, "lab")
        assert [user.name for user in tx.people.users()] == ["root"]
    assert (kept.login, kept.seen_at, kept.user) == ("eve", 2000.0, None)
    refused = staffed.events()[-1]
    assert (refused.action, refused.source) == ("identity.refused", "10.0.0.1")


def test_the_list_lets_people_in_as_scientists_of_its_group(staffed: Desk) -> None:
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("ANN",), "group": None})
    outcome = staffed.do(sign_in, "", identity("Ann", name="Ann Lee", email="ann@example.org"))
    assert outcome.user is not None
    assert outcome.is_new
    user = outcome.user
    assert (user.name, user.role, user.group, user.password_hash) == ("ann", Role.SCIENTIST, None, None)
    assert (user.provider, user.subject, user.display_name, user.email) == (
        "lab",
        "sub-Ann",
        "Ann Lee",
        "ann@example.org",
    )
    assert digest_of(staffed.loaded().snapshot.contents()) == digest_of(staffed.state.snapshot.contents())
    staffed.do(edit_provider, ROOT, "lab", {"allow": ()})
    again = staffed.do(sign_in, "", identity("Ann renamed", subject="sub-Ann"))
    assert (again.user, again.is_new) == (user, False), "by the subject, which never changes"


def test_the_group_of_newcomers_stays_as_long_as_they_are_put_there(staffed: Desk) -> None:
    staffed.do(groups.create, ROOT, "vision")
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",), "group": "vision"})
    with pytest.raises(InUse, match="users of lab are put into group vision"):
        staffed.do(groups.delete, ROOT, "vision")
    user = staffed.do(sign_in, "", identity()).user
    assert user is not None
    assert user.group == "vision"


def test_the_first_user_of_an_installation_is_an_operator(desk: Desk) -> None:
    desk.do(create_provider, ROOT, replace(LAB, enabled=True))
    first = desk.do(sign_in, "", identity("founder")).user
    assert first is not None
    assert first.role is Role.OPERATOR
    assert desk.do(sign_in, "", identity("second")).user is None


def test_disabled_people_and_providers_stay_outside(staffed: Desk) -> None:
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",)})
    staffed.do(sign_in, "", identity())
    staffed.do(edit_user, ROOT, "ann", disabled=True)
    outcome = staffed.do(sign_in, "", identity())
    assert (outcome.user, outcome.is_disabled) == (None, True)
    staffed.do(edit_provider, ROOT, "lab", {"enabled": False})
    with pytest.raises(WrongState, match="switched off"):
        staffed.do(sign_in, "", identity("bob"))


def test_a_name_that_passed_to_another_person_opens_nothing(staffed: Desk) -> None:
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",)})
    staffed.do(sign_in, "", identity())
    staffed.do(delete_user, ROOT, "ann")
    staffed.do(create_user, ROOT, "ann", password_hash="of another ann")
    back = staffed.do(sign_in, "", identity()).user
    assert back is not None
    assert back.name == "ann-2"


def test_the_jobs_of_a_former_user_are_not_inherited(staffed: Desk) -> None:
    staffed.do(create_user, ROOT, "ann", password_hash="hash")
    staffed.submit(draft("held", hold=True), caller=ANN)
    staffed.do(delete_user, ROOT, "ann")
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",)})
    user = staffed.do(sign_in, "", identity()).user
    assert user is not None
    assert user.name == "ann-2"


@pytest.mark.parametrize(
    ("entry", "allowed"),
    [
        ("*", True),
        ("Ann", True),
        ("ann@example.org", True),
        ("@EXAMPLE.org", True),
        ("bob", False),
        ("@ample.org", False),
        ("example.org", False),
        ("an", False),
    ],
)
def test_the_allow_list(entry: str, allowed: bool) -> None:
    assert is_allowed(replace(LAB, allow=(entry,)), identity(email="Ann@Example.org")) is allowed


def test_a_login_that_looks_like_an_address_is_none() -> None:
    boss = replace(LAB, allow=("boss@example.org", "@example.org"))
    assert not is_allowed(boss, identity("boss@example.org")), "the address is not verified"
    assert is_allowed(boss, identity("x", email="boss@example.org"))


@pytest.mark.parametrize(
    ("login", "name"),
    [
        ("ann", "ann"),
        ("Ann.Lee@example.org", "ann.lee"),
        ("-9-ann-", "ann"),
        ("Zoë Q", "zo-q"),
        ("corral", "corral-2"),
        ("日本", "user"),
        ("x" * 50, "x" * 32),
        ("taken", "taken-2"),
    ],
)
def test_user_names_follow_from_logins(login: str, name: str) -> None:
    assert name_for(login, lambda candidate: candidate != "taken") == name


def test_when_no_name_is_left_it_is_said() -> None:
    with pytest.raises(Taken, match="create the user by hand"):
        name_for("ann", lambda candidate: False)


# ------------------------------------------------------------------------------------------------ on-boarding


def test_on_boarding_is_all_or_nothing(staffed: Desk) -> None:
    staffed.do(remember, ROOT, "lab", [identity("ann"), identity("bob")])
    with pytest.raises(NotFound, match="nobody"):
        staffed.do(on_board, ROOT, "lab", ["sub-ann", "nobody"], "default")
    with pytest.raises(Invalid, match="no group"):
        staffed.do(on_board, ROOT, "lab", ["sub-ann"], "nowhere")
    with pytest.raises(Invalid):
        staffed.do(on_board, ROOT, "lab", [], "default")
    made = staffed.do(on_board, ROOT, "lab", ["sub-bob", "sub-ann", "sub-bob"], "default")
    assert [user.name for user in made] == ["bob", "ann"]
    with pytest.raises(Taken, match="ann is user ann"):
        staffed.do(on_board, ROOT, "lab", ["sub-ann"], "default")


def test_the_first_person_of_a_provider_may_become_its_operator(staffed: Desk) -> None:
    staffed.do(remember, ROOT, "lab", [identity("ann"), identity("bob")])
    with pytest.raises(Invalid, match="not among the subjects"):
        staffed.do(on_board, ROOT, "lab", ["sub-ann"], "default", ["sub-bob"])
    made = staffed.do(on_board, ROOT, "lab", ["sub-ann", "sub-bob"], "default", ["sub-ann"])
    assert [(user.name, user.role) for user in made] == [("ann", Role.OPERATOR), ("bob", Role.SCIENTIST)]
    with staffed.store.write() as tx:
        assert not has_operator(tx, "lab"), "the role is offered until an operator has signed in"
        tx.people.saw_user("ann", staffed.now)
        assert has_operator(tx, "lab")


def test_a_list_of_members_forgets_nothing(staffed: Desk) -> None:
    staffed.do(sign_in, "", identity("ann", name="Ann Lee", email="ann@example.org"))
    assert staffed.do(remember, ROOT, "lab", [identity("ann-new", subject="sub-ann"), identity("bob")]) == 1
    with staffed.store.read() as tx:
        kept = {item.subject: item for item in known_people(tx, "lab")}
    ann = kept["sub-ann"]
    assert (ann.login, ann.name, ann.email, ann.seen_at) == ("ann-new", "Ann Lee", "ann@example.org", 1000.0)
    assert kept["sub-bob"].seen_at == 0.0


# ------------------------------------------------------------------------------------------------ the last operator


@pytest.fixture
def led_by_boss(staffed: Desk) -> Desk:
    """The only operator who is not disabled comes from the provider."""
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",)})
    staffed.do(sign_in, "", identity("boss"))
    staffed.do(edit_user, ROOT, "boss", role=Role.OPERATOR)
    staffed.do(edit_user, ROOT, "root", disabled=True)
    return staffed


def test_the_provider_of_the_last_operator_stays(led_by_boss: Desk) -> None:
    for act in (
        lambda work: edit_provider(work, ROOT, "lab", {"enabled": False}),
        lambda work: delete_provider(work, ROOT, "lab"),
    ):
        with pytest.raises(WrongState, match="corral user password boss") as refusal:
            led_by_boss.do(act)
        assert refusal.value.numbers == {"operators": ["boss"]}
    led_by_boss.do(edit_user, ROOT, "boss", password_hash="a way in")
    led_by_boss.do(edit_provider, ROOT, "lab", {"enabled": False})
    assert provider(led_by_boss) is not None


def test_a_second_provider_is_a_way_in_only_when_it_is_on(led_by_boss: Desk) -> None:
    led_by_boss.do(create_provider, ROOT, replace(LAB, id="spare", issuer="https://two.example.org", allow=("*",)))
    led_by_boss.do(edit_provider, ROOT, "spare", {"enabled": True})
    led_by_boss.do(sign_in, "", identity("deputy", provider="spare"))
    led_by_boss.do(edit_user, ROOT, "deputy", role=Role.OPERATOR)
    led_by_boss.do(edit_provider, ROOT, "lab", {"enabled": False})
    with pytest.raises(WrongState, match="corral user password deputy"):
        led_by_boss.do(edit_provider, ROOT, "spare", {"enabled": False})
    with pytest.raises(WrongState, match="last operator"):
        led_by_boss.do(edit_user, ROOT, "deputy", role=Role.SCIENTIST)


def test_deleting_a_provider_leaves_its_users_outside_but_there(staffed: Desk) -> None:
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("*",)})
    staffed.do(sign_in, "", identity())
    with staffed.store.write() as tx:
        tx.credentials.add(CredentialRecord(id="c-1", kind=CredentialKind.SESSION, user="ann", secret_hash="h"))
    assert staffed.do(delete_provider, ROOT, "lab") == ["ann"]
    with staffed.store.read() as tx:
        ann = tx.people.user("ann")
        assert ann is not None
        assert (ann.provider, ann.subject) == ("local", "")
        assert tx.credentials.of_user("ann", CredentialKind.SESSION) == []
    staffed.do(create_provider, ROOT, replace(LAB, enabled=True, issuer="https://evil.example.org", allow=("*",)))
    impostor = staffed.do(sign_in, "", identity()).user
    assert impostor is not None
    assert impostor.name == "ann-2", "the same id at another provider is another person"


# ------------------------------------------------------------------------------------------------ groups and roles


@pytest.fixture
def ruled(staffed: Desk) -> Desk:
    staffed.do(groups.create, ROOT, "vision")
    staffed.do(groups.create, ROOT, "robots")
    rules = ("ml=vision", "arms=robots", "admins=@operator")
    staffed.do(edit_provider, ROOT, "lab", {"group_rules": rules})
    return staffed


def test_groups_of_the_provider_admit_and_place_a_person(ruled: Desk) -> None:
    assert ruled.do(sign_in, "10.0.0.1", identity("eve"), ["strangers"]).user is None
    made = ruled.do(sign_in, "10.0.0.1", identity(), ["ml"])
    assert made.is_new
    assert made.user is not None
    assert (made.user.group, made.user.role) == ("vision", Role.SCIENTIST)
    assert ruled.state.snapshot.memberships["ann"].group == "vision"


def test_the_rules_are_followed_at_every_sign_in(ruled: Desk) -> None:
    ruled.do(sign_in, "10.0.0.1", identity(), ["ml"])
    moved = ruled.do(sign_in, "10.0.0.1", identity(), ["arms", "admins"]).user
    assert moved is not None
    assert (moved.group, moved.role) == ("robots", Role.OPERATOR)
    assert ruled.state.snapshot.memberships["ann"].group == "robots"
    left = ruled.do(sign_in, "10.0.0.1", identity(), []).user
    assert left is not None
    assert (left.group, left.role) == ("robots", Role.SCIENTIST), "the group stays, the role does not"


def test_the_last_operator_keeps_the_role(ruled: Desk) -> None:
    ruled.do(sign_in, "10.0.0.1", identity(), ["admins"])
    ruled.do(edit_user, ROOT, "root", disabled=True)
    kept = ruled.do(sign_in, "10.0.0.1", identity(), []).user
    assert kept is not None
    assert kept.role is Role.OPERATOR
    assert "user.role-kept" in [event.action for event in ruled.events()]


def test_without_rules_groups_of_the_provider_change_nothing(staffed: Desk) -> None:
    staffed.do(edit_provider, ROOT, "lab", {"allow": ("ann",)})
    made = staffed.do(sign_in, "10.0.0.1", identity(), ["admins", "vision"]).user
    assert made is not None
    assert (made.group, made.role) == ("default", Role.SCIENTIST)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"group_rules": ("ml",)}, "'ml' is not a rule"),
        ({"group_rules": ("ml=nowhere",)}, "no group 'nowhere'"),
        ({"groups_claim": "two words"}, "the claim must not contain blanks"),
    ],
)
def test_rules_are_checked(staffed: Desk, change: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid, match=text):
        staffed.do(edit_provider, ROOT, "lab", change)


def test_github_has_no_groups_and_a_group_of_a_rule_cannot_be_deleted(ruled: Desk) -> None:
    hub = ProviderRecord(id="hub", kind=ProviderKind.GITHUB, client_id="x", group_rules=("ml=vision",))
    with pytest.raises(Invalid, match="GitHub names no groups"):
        ruled.do(create_provider, ROOT, hub)
    with pytest.raises(InUse, match="users of lab are put into group vision"):
        ruled.do(groups.delete, ROOT, "vision")
