"""Questions to a real directory (OpenLDAP): passwords, people, groups, encryption, and attacks on all of them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.control.records import DirectoryRecord, ProviderKind, ProviderRecord
from corral.server.auth.directory.checks import checks_of
from corral.server.auth.directory.connection import connected
from corral.server.auth.directory.directory import Directory
from corral.server.auth.outside import ProviderFailed
from tests.servers.certificates import make_certificate
from tests.servers.ldap_server import BASE, GROUPS, PEOPLE, SERVICE, SERVICE_PASSWORD, LdapServer, reason_to_skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ldap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapServer]:
    reason = reason_to_skip()
    if reason is not None:
        pytest.skip(reason)
    server = LdapServer(tmp_path_factory.mktemp("ldap"))
    server.start()
    ann, bob = server.add_person("ann", "ann-Passw0rd"), server.add_person("bob", "bob-Passw0rd")
    server.add_group("vision", ann)
    server.add_group("seniors", server.add_group("platform", bob))
    yield server
    server.stop()


@pytest.fixture
def lab(ldap: LdapServer) -> ProviderRecord:
    return ProviderRecord(
        id="lab",
        kind=ProviderKind.LDAP,
        issuer=ldap.encrypted,
        client_id=SERVICE,
        client_secret="locked",
        groups_claim="memberOf",
        directory=DirectoryRecord(base=PEOPLE, group_base=GROUPS, ca_certificate=ldap.ca),
    )


def opened(provider: ProviderRecord, **settings: Any) -> Directory:
    password = settings.pop("password", SERVICE_PASSWORD)
    assert provider.directory is not None
    changed = replace(provider, directory=replace(provider.directory, **settings))
    return Directory(provider=changed, password=password, now=time.time)


def test_a_person_is_who_has_the_password(lab: ProviderRecord) -> None:
    person = opened(lab).person("ann", "ann-Passw0rd")
    assert person is not None
    assert (person.login, person.name, person.email) == ("ann", "Ann Example", "ann@lab.org")
    assert len(person.subject) == 36
    assert set(person.member_of) == {f"cn=vision,{GROUPS}", "vision"}
    # The login is the directory's, whatever its capitals: one person, one name.
    assert opened(lab).person("ANN", "ann-Passw0rd") == person
    for login, password in (("ann", "bob-Passw0rd"), ("ann", "ann-passw0rd"), ("missing", "ann-Passw0rd")):
        assert opened(lab).person(login, password) is None


def test_each_way_of_signing_in_proves_the_same(ldap: LdapServer, lab: ProviderRecord) -> None:
    """Bind as the person with a name made of the login, after an anonymous search, and after StartTLS."""
    known = opened(lab).person("bob", "bob-Passw0rd")
    assert known is not None
    nameless = replace(lab, client_id="", client_secret="")
    for directory in (
        opened(nameless, bind_as=f"uid={{}},{PEOPLE}", password=""),
        opened(nameless, password=""),
        opened(replace(lab, issuer=ldap.named)),
        opened(replace(lab, issuer=ldap.plain), starttls=False, ca_certificate=""),
    ):
        assert directory.person("bob", "bob-Passw0rd") == known
        assert directory.person("bob", "ann-Passw0rd") is None
        assert directory.person("bob", "") is None


def test_groups_in_groups_count_only_if_the_settings_say_so(lab: ProviderRecord) -> None:
    def groups_of(**settings: Any) -> set[str]:
        person = opened(lab, **settings).person("bob", "bob-Passw0rd")
        assert person is not None
        return set(person.member_of)

    platform, seniors = f"cn=platform,{GROUPS}", f"cn=seniors,{GROUPS}"
    assert groups_of() == {platform, "platform"}
    assert groups_of(nested=True) == {platform, "platform", seniors, "seniors"}
    # Without a place for groups there are no short names: any place could have a group with such a name.
    assert groups_of(group_base="") == {platform}
    assert groups_of(group_base="", nested=True, base=BASE) == {platform, seniors}


def test_groups_in_a_circle_are_followed_once(ldap: LdapServer, lab: ProviderRecord) -> None:
    one = ldap.add_group("circle-one", f"uid=ann,{PEOPLE}")
    two = ldap.add_group("circle-two", one)
    ldap.change(f"dn: {one}\nchangetype: modify\nadd: member\nmember: {two}\n")
    person = opened(lab, nested=True).person("ann", "ann-Passw0rd")
    assert person is not None
    assert {"circle-one", "circle-two"} <= set(person.member_of)
    ldap.delete(two)
    ldap.delete(one)


def test_a_group_of_the_same_name_elsewhere_has_no_short_name(ldap: LdapServer, lab: ProviderRecord) -> None:
    """People who may create groups in one place do not become members of a group in another one."""
    place = f"ou=students,{GROUPS}"
    ldap.add(f"dn: {place}\nobjectClass: organizationalUnit\nou: students\n")
    fake = ldap.add_group("platform", f"uid=ann,{PEOPLE}", place=place)
    person = opened(lab).person("ann", "ann-Passw0rd")
    assert person is not None
    assert fake in person.member_of
    assert "platform" not in person.member_of
    ldap.delete(fake)
    ldap.delete(place)


def test_posix_groups_name_members_by_their_login(ldap: LdapServer, lab: ProviderRecord) -> None:
    name = f"cn=cluster,{GROUPS}"
    ldap.add(f"dn: {name}\nobjectClass: posixGroup\ncn: cluster\ngidNumber: 7\nmemberUid: ann\n")
    settings = {"group_filter": "(objectClass=posixGroup)", "member_attribute": "memberUid", "nested": True}
    person = opened(lab, **settings).person("ann", "ann-Passw0rd")
    assert person is not None
    assert "cluster" in person.member_of
    other = opened(lab, **settings).person("bob", "bob-Passw0rd")
    assert other is not None
    assert "cluster" not in other.member_of
    ldap.delete(name)


@pytest.mark.parametrize(
    "login",
    [
        "*",
        "ann*",
        "a*n",
        "*)(uid=*",
        "ann)(objectClass=*",
        "ann)(|(uid=*",
        r"\2a",
        "ann\0",
        "ann,ou=x",
        "ａｎｎ",
        "ann ",
        "",
    ],
)
def test_no_login_is_read_as_a_filter(lab: ProviderRecord, login: str) -> None:
    for directory in (opened(lab), opened(lab, bind_as=f"uid={{}},{PEOPLE}")):
        assert directory.person(login, "ann-Passw0rd") is None


@pytest.mark.parametrize("password", ["", "\0", "\0ann-Passw0rd", "ann-Passw0rd\0", " ", "*"])
def test_a_password_that_is_empty_for_a_directory_proves_nothing(lab: ProviderRecord, password: str) -> None:
    """A bind with a name and without a password succeeds in many directories, as nobody."""
    assert opened(lab).person("ann", password) is None


def test_an_empty_password_is_not_even_sent(tmp_path: Path) -> None:
    """A directory that accepts such binds (`bind_anon_cred`, `bind_anon_dn`) is not asked."""
    server = LdapServer(tmp_path / "lax")
    server.start("allow bind_anon_cred bind_anon_dn")
    try:
        name = server.add_person("ann", "ann-Passw0rd")
        before = server.log().count("BIND")
        line = connected(server.plain, DirectoryRecord(base=PEOPLE, starttls=False), seconds=10)
        assert not line.bind(name, "")
        assert not line.bind("", "ann-Passw0rd")
        assert not line.bind(name, "\0")
        line.close()
        assert server.log().count("BIND") == before
        lab = ProviderRecord(
            id="lab",
            kind=ProviderKind.LDAP,
            issuer=server.plain,
            directory=DirectoryRecord(base=PEOPLE, starttls=False),
        )
        for password in ("", "\0"):
            assert opened(lab, password="").person("ann", password) is None
        assert opened(lab, password="").person("ann", "ann-Passw0rd") is not None
    finally:
        server.stop()


def test_a_login_of_two_people_is_refused(ldap: LdapServer, lab: ProviderRecord) -> None:
    """Someone who may create entries somewhere does not take over a login."""
    place = f"ou=guests,{PEOPLE}"
    ldap.add(f"dn: {place}\nobjectClass: organizationalUnit\nou: guests\n")
    twin = ldap.add_person("ann", "twin-Passw0rd", place=place)
    for password in ("ann-Passw0rd", "twin-Passw0rd"):
        assert opened(lab).person("ann", password) is None
    ldap.delete(twin)
    ldap.delete(place)
    assert opened(lab).person("ann", "ann-Passw0rd") is not None


def test_only_entries_that_the_filter_names_are_people(lab: ProviderRecord) -> None:
    assert opened(lab, user_filter="(mail=ann@lab.org)").person("ann", "ann-Passw0rd") is not None
    assert opened(lab, user_filter="(mail=ann@lab.org)").person("bob", "bob-Passw0rd") is None
    assert opened(lab, base=GROUPS).person("ann", "ann-Passw0rd") is None


@pytest.mark.parametrize(
    "state", ["objectClass: shadowAccount\nshadowExpire: 1", "pwdAccountLockedTime: 000001010000Z"]
)
def test_a_disabled_account_does_not_sign_in(ldap: LdapServer, lab: ProviderRecord, state: str) -> None:
    name = ldap.add_person("dan", "dan-Passw0rd", more="")
    person = opened(lab).person("dan", "dan-Passw0rd")
    assert person is not None
    assert [item.subject for item in opened(lab).present([person.subject])] == [person.subject]
    lines = "".join(f"add: {line.partition(':')[0]}\n{line}\n-\n" for line in state.split("\n"))
    ldap.change(f"dn: {name}\nchangetype: modify\n{lines}")
    assert opened(lab).person("dan", "dan-Passw0rd") is None
    assert opened(lab).present([person.subject]) == []
    assert "dan" not in [item.login for item in opened(lab).people()]
    ldap.delete(name)


def test_people_are_looked_up_by_id(ldap: LdapServer, lab: ProviderRecord) -> None:
    """More people than one search asks for, one who has left, and ids without an entry."""
    names = [ldap.add_person(f"p{number}", "some-Passw0rd") for number in range(60)]
    listed = {item.login: item.subject for item in opened(lab).people()}
    assert {"ann", "bob", "p0", "p59"} <= set(listed)
    ldap.delete(names[7])
    asked = [*listed.values(), "00000000-0000-0000-0000-000000000000", "*", "x)(uid=*"]
    found = {item.subject: item for item in opened(lab).present(asked)}
    assert set(found) == set(listed.values()) - {listed["p7"]}
    assert "vision" in found[listed["ann"]].member_of
    for name in (*names[:7], *names[8:]):
        ldap.delete(name)


def test_a_directory_that_shows_no_person_has_not_lost_all(lab: ProviderRecord) -> None:
    """Lost rights and a wrong base are no reason to sign all people out."""
    with pytest.raises(ProviderFailed, match="shows no person"):
        opened(lab, base=GROUPS).present(["some-id"])
    with pytest.raises(ProviderFailed, match="cannot be searched"):
        opened(lab, base=f"ou=nowhere,{BASE}").present(["some-id"])
    with pytest.raises(ProviderFailed, match="does not accept the service account"):
        opened(lab, password="wrong").present(["some-id"])


def test_a_directory_that_is_not_the_one_gets_no_password(
    ldap: LdapServer, lab: ProviderRecord, tmp_path: Path
) -> None:
    """Another authority, another name, and no trusted certificate at all; by LDAPS and by StartTLS."""
    other = make_certificate(tmp_path)[0].read_text()
    before = ldap.log().count("BIND")
    for issuer in (ldap.encrypted, ldap.named):
        for settings in ({"ca_certificate": other}, {"ca_certificate": ""}, {"ca_certificate": "no certificate"}):
            with pytest.raises(ProviderFailed, match=r"trusted|certificate"):
                opened(replace(lab, issuer=issuer), **settings).person("ann", "ann-Passw0rd")
        wrong_name = issuer.replace("localhost", "127.0.0.2")
        with pytest.raises(ProviderFailed, match="trusted"):
            opened(replace(lab, issuer=wrong_name)).person("ann", "ann-Passw0rd")
    assert ldap.log().count("BIND") == before


@contextmanager
def answering(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A program in the place of a directory; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                while True:
                    line, _ = listening.accept()
                    with line:
                        behave(line)
            except OSError:
                pass  # the test is over

        threading.Thread(target=serve, daemon=True).start()
        yield f"ldap://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_no_password_follows_a_refused_starttls(lab: ProviderRecord) -> None:
    """An attacker in between may answer that there is no TLS, or send something before the handshake."""
    heard: list[bytes] = []
    #: an extended answer with protocolError; with success and a successful bind behind it
    refusal = bytes.fromhex("300c020101780702010204000400")
    injected = bytes.fromhex("300c02010178070a010004000400") + bytes.fromhex("300c02010261070a010004000400")

    for answer in (refusal, bytes.fromhex("300c02010178070a010204000400"), injected):

        def behave(line: socket.socket, answer: bytes = answer) -> None:
            heard.append(line.recv(4096))
            line.sendall(answer)
            heard.append(line.recv(4096))

        with answering(behave) as address, pytest.raises(ProviderFailed):
            opened(replace(lab, issuer=address)).person("ann", "ann-Passw0rd")
    assert heard
    assert not any(b"Passw0rd" in said or b"S3cret" in said for said in heard)


def waiting(release: threading.Event) -> None:
    release.wait(30)


def test_a_directory_that_says_nothing_or_nonsense_is_left(lab: ProviderRecord) -> None:
    def endless(line: socket.socket) -> None:
        line.recv(4096)
        while True:
            line.sendall(b"\x30\x84\x7f\xff\xff\xff" + b"\x00" * 65536)

    for behave in (lambda line: line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), lambda line: None, endless):
        with answering(behave) as address:
            settings = DirectoryRecord(base=PEOPLE, starttls=False)
            line = connected(address, settings, seconds=5)
            with pytest.raises(ProviderFailed):
                line.bind("cn=x", "some-Passw0rd")
            line.close()
    release = threading.Event()
    with answering(lambda line: waiting(release)) as address:
        line = connected(address, DirectoryRecord(base=PEOPLE, starttls=False), seconds=0.2)
        with pytest.raises(ProviderFailed, match="in time"):
            line.bind("cn=x", "some-Passw0rd")
        release.set()
        line.close()


def test_referrals_are_not_followed(ldap: LdapServer, lab: ProviderRecord) -> None:
    """A reference in the results is left out, and no connection goes to where it leads."""
    visits: list[str] = []

    def behave(line: socket.socket) -> None:
        visits.append("visited")

    with answering(behave) as address:
        name = f"ou=away,{PEOPLE}"
        ldap.add(f"dn: {name}\nobjectClass: referral\nobjectClass: extensibleObject\nou: away\nref: {address}/{name}\n")
        person = opened(lab).person("ann", "ann-Passw0rd")
        assert person is not None
        assert opened(lab).present([person.subject])[0].subject == person.subject
        with pytest.raises(ProviderFailed, match="refers to another server"):
            opened(lab, base=name).present([person.subject])
        assert opened(replace(lab, issuer=ldap.encrypted)).person("away", "ann-Passw0rd") is None
        ldap.change(f"dn: {name}\ncontrol: 2.16.840.1.113730.3.4.2 true\nchangetype: delete\n")
    assert visits == []


def test_a_copy_is_asked_if_the_first_address_does_not_answer(ldap: LdapServer, lab: ProviderRecord) -> None:
    gone = "ldaps://localhost:1"
    assert opened(replace(lab, issuer=gone), more_addresses=(ldap.encrypted,)).person("ann", "ann-Passw0rd")
    with pytest.raises(ProviderFailed, match="cannot be reached"):
        opened(replace(lab, issuer=gone)).person("ann", "ann-Passw0rd")


def test_the_test_names_what_is_wrong(ldap: LdapServer, lab: ProviderRecord) -> None:
    def states(directory: Directory) -> dict[str, str]:
        return {check.name: check.state for check in checks_of(directory)}

    fine = replace(lab, allow=("*",), group_rules=("vision=default", f"cn=Platform,{GROUPS}=@operator"))
    assert states(opened(fine)) == dict.fromkeys(("encryption", "connection", "people", "groups", "allow"), "ok")
    assert states(opened(lab))["allow"] == "warn"
    assert states(opened(replace(fine, group_rules=("nowhere=default",))))["rules"] == "warn"
    assert states(opened(fine, group_base=""))["rules"] == "warn"
    assert states(opened(fine, password="wrong"))["connection"] == "fail"
    assert states(opened(fine, user_filter="(uid=missing)"))["people"] == "fail"
    assert states(opened(fine, id_attribute="objectGUID"))["people"] == "fail"
    assert states(opened(fine, login_attribute="sAMAccountName"))["people"] == "fail"
    assert states(opened(fine, base=f"ou=nowhere,{BASE}"))["connection"] == "fail"
    plain = opened(replace(fine, issuer=ldap.plain), starttls=False)
    assert states(plain)["encryption"] == "warn"
    unattended = opened(replace(fine, client_id="", client_secret=""), bind_as=f"uid={{}},{PEOPLE}")
    assert states(unattended)["refresh"] == "warn"
