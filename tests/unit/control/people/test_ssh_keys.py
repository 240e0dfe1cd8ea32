"""SSH keys: what is taken for a key, and what never is."""

from __future__ import annotations

import base64
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from corral.control.errors import Invalid, NotFound, OverLimit, Taken
from corral.control.people import ssh_keys
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import Store
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk

#: A key and the fingerprint that `ssh-keygen -l` prints for it.
KNOWN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
KNOWN_FINGERPRINT = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def line(private: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def wire(*fields: bytes) -> str:
    blob = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    return f"{fields[0].decode()} {base64.b64encode(blob).decode()}"


def point(curve: ec.EllipticCurve) -> bytes:
    public = ec.generate_private_key(curve).public_key()
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@pytest.fixture
@once
def staffed(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


def test_the_fingerprint_is_openssh_s_own() -> None:
    key = ssh_keys.parse(f"  {KNOWN} ann@laptop, the new one \n")
    assert (key.kind, key.fingerprint, key.comment) == ("ssh-ed25519", KNOWN_FINGERPRINT, "ann@laptop, the new one")
    assert key.line == KNOWN, "kept without the comment"


@pytest.mark.parametrize(
    "text",
    [
        line(ed25519.Ed25519PrivateKey.generate()),
        line(ec.generate_private_key(ec.SECP256R1())),
        line(ec.generate_private_key(ec.SECP384R1())),
        line(ec.generate_private_key(ec.SECP521R1())),
        line(rsa.generate_private_key(65537, 2048)),
        wire(b"sk-ssh-ed25519@openssh.com", bytes(range(32)), b"ssh:"),
        wire(b"sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", point(ec.SECP256R1()), b"ssh:work"),
    ],
    ids=lambda text: text.split()[0],
)
def test_every_kind_of_key_that_is_worth_something(text: str) -> None:
    assert ssh_keys.parse(f"# my key\n{text} a comment\n").line == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no key"),
        (f"{KNOWN}\n{KNOWN}", "one key"),
        ("ssh-ed25519", "missing"),
        ("ssh-ed25519 not_base64!", "base64"),
        (KNOWN[:-8], "cut or damaged: Invalid data"),
        (KNOWN.replace("ssh-ed25519 ", "ssh-rsa "), "not of the type"),
        (wire(b"ssh-ed25519", b"short"), "32 bytes"),
        (wire(b"ssh-ed25519", bytes(32), b"more"), "damaged: Corrupt data: unparsed data"),
        (wire(b"ecdsa-sha2-nistp256", b"nistp384", point(ec.SECP384R1())), "Curve name mismatch"),
        (wire(b"ecdsa-sha2-nistp256", b"nistp256", b"\x04" + bytes(64)), "Invalid EC key"),
        (wire(b"ecdsa-sha2-nistp256", b"nistp256", b"\x02" + bytes(32)), "uncompressed"),
        (wire(b"sk-ssh-ed25519@openssh.com", bytes(32), b"https://elsewhere"), "does not start with b'ssh:'"),
        (wire(b"ssh-rsa", b"\x01\x00\x01", b"\x00" + b"\xff" * 128), "2048 bits, this one has 1024"),
        (wire(b"ssh-rsa", b"\x02", b"\x00" + b"\xff" * 256), "e must be >= 3"),
        (wire(b"ssh-rsa", b"\x01\x00\x01", b"\x00" + b"\xff" * 4096), "at most 16384"),
        (wire(b"ssh-ed25519-cert-v01@openssh.com", bytes(32)), "certificate"),
        ("ssh-dss AAAA", "DSA"),
        (f'command="rm -rf /" {KNOWN}', "options"),
        ("hello world", "begins with its type"),
        ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA", "ssh-keygen -i"),
        ("ssh-rsa " + "A" * 9000, "at most"),
    ],
)
def test_an_invalid_key_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as refusal:
        ssh_keys.parse(text)
    assert refusal.value.field == "public_key"


def test_a_private_key_is_refused_with_a_warning_and_never_repeated() -> None:
    for private in (ed25519.Ed25519PrivateKey.generate(), dsa.generate_private_key(2048)):
        form = PrivateFormat.OpenSSH if isinstance(private, ed25519.Ed25519PrivateKey) else PrivateFormat.PKCS8
        text = private.private_bytes(Encoding.PEM, form, NoEncryption()).decode()
        with pytest.raises(Invalid, match="never paste it anywhere") as refusal:
            ssh_keys.parse(text)
        assert text.splitlines()[1] not in str(refusal.value)
    with pytest.raises(Invalid, match="PRIVATE"):
        ssh_keys.parse("PuTTY-User-Key-File-3: ssh-ed25519")


def test_a_key_belongs_to_one_user_under_one_name(staffed: Desk) -> None:
    other = line(ed25519.Ed25519PrivateKey.generate())
    added = staffed.do(ssh_keys.add, ANN, "k-1", "laptop", KNOWN)
    assert added.fingerprint == KNOWN_FINGERPRINT
    for caller, name, text in ((ANN, "again", KNOWN), (BOB, "stolen", KNOWN), (ANN, "laptop", other)):
        with pytest.raises(Taken):
            staffed.do(ssh_keys.add, caller, "k-2", name, text)
    staffed.do(ssh_keys.add, ANN, "k-2", "desk", other)
    with pytest.raises(NotFound):
        staffed.do(ssh_keys.remove, BOB, "k-1")
    staffed.do(ssh_keys.remove, ANN, "k-1")
    staffed.do(ssh_keys.add, BOB, "k-3", "laptop", KNOWN)
    assert staffed.actions("ann")[1:] == ["ssh-key.added", "ssh-key.added", "ssh-key.removed"]
    with staffed.store.read() as tx:
        assert [key.id for key in tx.ssh_keys.of_user("ann")] == ["k-2"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 64, "two\nlines"])
def test_a_key_has_a_readable_name(staffed: Desk, name: str) -> None:
    with pytest.raises(Invalid):
        staffed.do(ssh_keys.add, ANN, "k-1", name, KNOWN)


def test_there_is_an_end_to_the_keys_of_one_user(staffed: Desk) -> None:
    for number in range(ssh_keys.MAX_KEYS):
        staffed.do(ssh_keys.add, ANN, f"k-{number}", f"key {number}", wire(b"ssh-ed25519", bytes([number]) * 32))
    with pytest.raises(OverLimit):
        staffed.do(ssh_keys.add, ANN, "k-last", "one more", KNOWN)


def test_a_deleted_user_s_keys_are_free_again(staffed: Desk) -> None:
    staffed.do(ssh_keys.add, ANN, "k-1", "laptop", KNOWN)
    staffed.do(delete_user, ROOT, "ann")
    assert staffed.do(ssh_keys.add, BOB, "k-2", "laptop", KNOWN).user == "bob"
