"""SSH public keys of users: which ones are accepted, and how they are kept.

Decides by the key's own wire format (RFC 4253, RFC 5656, OpenSSH's PROTOCOL.u2f), never by what the text around it
says. What is kept is one line without a comment.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec

from corral.control.errors import Invalid, NotFound, OverLimit, Taken
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import SshKeyRecord

MAX_KEYS = 50
MAX_NAME = 63
#: a 16384-bit RSA key has about 2,800 characters
MAX_TEXT = 8192
MIN_RSA_BITS = 2048
MAX_RSA_BITS = 16384

_CURVES: Mapping[str, ec.EllipticCurve] = {
    "nistp256": ec.SECP256R1(),
    "nistp384": ec.SECP384R1(),
    "nistp521": ec.SECP521R1(),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicKey:
    kind: str
    #: kind and key in base64, without a comment
    line: str
    fingerprint: str
    comment: str


# ---------------------------------------------------------------- use cases


def add(work: Work, caller: Caller, key_id: str, name: str, text: str) -> SshKeyRecord:
    """One more key of the caller's own. A key belongs to one user: it says who somebody is."""
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise Invalid(f"a name has 1 to {MAX_NAME} printable characters", field="name")
    key = parse(text)
    mine = work.tx.ssh_keys.of_user(caller.name)
    if any(item.fingerprint == key.fingerprint for item in mine):
        raise Taken("you have this key already", field="public_key", fingerprint=key.fingerprint)
    if work.tx.ssh_keys.by_fingerprint(key.fingerprint):
        raise Taken("another user has this key already", field="public_key", fingerprint=key.fingerprint)
    if any(item.name == name for item in mine):
        raise Taken(f"you have a key named {name!r} already", field="name", name=name)
    if len(mine) >= MAX_KEYS:
        raise OverLimit(f"you have {len(mine)} keys: remove one first", held=len(mine), limit=MAX_KEYS)
    record = SshKeyRecord(
        id=key_id,
        user=caller.name,
        name=name,
        public_key=key.line,
        fingerprint=key.fingerprint,
        created_at=work.now,
    )
    work.tx.ssh_keys.add(record)
    detail = {"id": key_id, "name": name, "fingerprint": key.fingerprint}
    work.record(caller, "ssh-key.added", caller.name, owner=caller.name, detail=detail)
    return record


def remove(work: Work, caller: Caller, key_id: str) -> None:
    """One of the caller's own."""
    found = [item for item in work.tx.ssh_keys.of_user(caller.name) if item.id == key_id]
    if not found:
        raise NotFound(f"there is no key {key_id!r}", field="id")
    work.tx.ssh_keys.delete([key_id])
    detail = {"id": key_id, "name": found[0].name, "fingerprint": found[0].fingerprint}
    work.record(caller, "ssh-key.removed", caller.name, owner=caller.name, detail=detail)


# ---------------------------------------------------------------- reading


def parse(text: str) -> PublicKey:
    """A public key as it stands in a .pub file. Raises Invalid; the text itself is never repeated."""
    _refuse_other_things(text)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) != 1:
        raise _refused("give one key, on one line" if lines else "there is no key in it")
    words = lines[0].split(None, 2)
    kind = words[0]
    if kind not in _KINDS:
        raise _refused(_unknown_kind(kind))
    if len(words) < 2:
        raise _refused("the key itself is missing after its type")
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise _refused("the key is cut or damaged: it is not base64") from None
    reader = _Reader(blob)
    if reader.text() != kind:
        raise _refused(f"the key is not of the type {kind} that stands in front of it")
    _KINDS[kind](reader)
    if reader.rest:
        raise _refused("the key is damaged: something follows its end")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return PublicKey(
        kind=kind,
        line=f"{kind} {base64.b64encode(blob).decode()}",
        fingerprint=f"SHA256:{digest}",
        comment=words[2].strip() if len(words) > 2 else "",
    )


def _refuse_other_things(text: str) -> None:
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        raise _refused(
            "this is a PRIVATE key: never paste it anywhere. Nothing was kept, but consider it compromised and make "
            "a new pair; what belongs here is the file that ends in .pub"
        )
    if len(text) > MAX_TEXT:
        raise _refused(f"a public key has at most {MAX_TEXT} characters")
    if "BEGIN SSH2 PUBLIC KEY" in text or "BEGIN PUBLIC KEY" in text or "BEGIN RSA PUBLIC KEY" in text:
        raise _refused("this is not OpenSSH's format: convert it with ssh-keygen -i -f FILE")


def _unknown_kind(kind: str) -> str:
    known = ", ".join(_KINDS)
    if "-cert-" in kind:
        return "this is a certificate; paste the key that it was made for"
    if kind == "ssh-dss":
        return "DSA keys are too weak: make a new one with ssh-keygen -t ed25519"
    if "=" in kind or "," in kind or kind in ("restrict", "no-pty"):
        return "leave out the options in front of the key"
    return f"a public key begins with its type, one of: {known}"


class _Reader:
    """The fields of a key one after the other."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def field(self) -> bytes:
        length = int.from_bytes(self.rest[:4]) if len(self.rest) >= 4 else -1
        if length < 0 or length > len(self.rest) - 4:
            raise _refused("the key is cut or damaged: its end is missing")
        found, self.rest = self.rest[4 : 4 + length], self.rest[4 + length :]
        return found

    def text(self) -> str:
        return self.field().decode("ascii", "replace")

    def number(self) -> int:
        return int.from_bytes(self.field(), signed=True)


def _rsa(reader: _Reader) -> None:
    exponent, modulus = reader.number(), reader.number()
    bits = modulus.bit_length() if modulus > 0 else 0
    if bits < MIN_RSA_BITS:
        raise _refused(
            f"an RSA key needs at least {MIN_RSA_BITS} bits, this one has {bits}: ssh-keygen -t ed25519 makes a better",
            bits=bits,
            limit=MIN_RSA_BITS,
        )
    if bits > MAX_RSA_BITS:
        raise _refused(f"an RSA key has at most {MAX_RSA_BITS} bits, this one {bits}", bits=bits, limit=MAX_RSA_BITS)
    if exponent < 3 or exponent % 2 == 0 or modulus % 2 == 0:
        raise _refused("the key is damaged: these are no numbers of an RSA key")


def _ed25519(reader: _Reader) -> None:
    if len(reader.field()) != 32:
        raise _refused("the key is damaged: an ed25519 key has 32 bytes")


def _ecdsa(curve: str) -> Callable[[_Reader], None]:
    def check(reader: _Reader) -> None:
        if reader.text() != curve:
            raise _refused(f"the key is damaged: its curve is not {curve}")
        try:
            ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[curve], reader.field())
        except ValueError:
            raise _refused(f"the key is damaged: its point is not on the curve {curve}") from None

    return check


def _of_device(check: Callable[[_Reader], None]) -> Callable[[_Reader], None]:
    """A key in a security device also names the application that it is for."""

    def check_both(reader: _Reader) -> None:
        check(reader)
        if not reader.text().startswith("ssh:"):
            raise _refused("the key of this device is not for SSH")

    return check_both


_KINDS: Mapping[str, Callable[[_Reader], None]] = {
    "ssh-ed25519": _ed25519,
    "ecdsa-sha2-nistp256": _ecdsa("nistp256"),
    "ecdsa-sha2-nistp384": _ecdsa("nistp384"),
    "ecdsa-sha2-nistp521": _ecdsa("nistp521"),
    "ssh-rsa": _rsa,
    "sk-ssh-ed25519@openssh.com": _of_device(_ed25519),
    "sk-ecdsa-sha2-nistp256@openssh.com": _of_device(_ecdsa("nistp256")),
}


def _refused(why: str, **numbers: int) -> Invalid:
    return Invalid(why, field="public_key", **numbers)
