"""SSH public keys of users: which ones are accepted, and how they are kept.

The key's bytes decide (as the `cryptography` package reads them), never the text around them. One line without a
comment is stored.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from corral.control.errors import Invalid, NotFound, OverLimit, Taken
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import SshKeyRecord
from corral.core.counts import counted

MAX_KEYS = 50
MAX_NAME = 63
#: a 16384-bit RSA key has about 2,800 characters
MAX_TEXT = 8192
MIN_RSA_BITS = 2048
MAX_RSA_BITS = 16384

_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicKey:
    kind: str
    #: kind and key in base64, without a comment
    line: str
    fingerprint: str
    comment: str


# ---------------------------------------------------------------- use cases


def add(work: Work, caller: Caller, key_id: str, name: str, text: str) -> SshKeyRecord:
    """Adds a key to the caller's own. A key belongs to one user: it identifies that user."""
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
        raise OverLimit(f"you have {counted(len(mine), 'key')}: remove one first", held=len(mine), limit=MAX_KEYS)
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
    """Deletes one of the caller's own keys."""
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
    parts = lines[0].split(None, 2)
    kind = parts[0]
    if kind not in _KINDS:
        raise _refused(_unknown_kind(kind))
    if len(parts) < 2:
        raise _refused("the key itself is missing after its type")
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError):
        raise _refused("the key is cut or damaged: it is not base64") from None
    _check(kind, blob)
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return PublicKey(
        kind=kind,
        line=f"{kind} {base64.b64encode(blob).decode()}",
        fingerprint=f"SHA256:{digest}",
        comment=parts[2].strip() if len(parts) > 2 else "",
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


def _check(kind: str, blob: bytes) -> None:
    """Raises Invalid unless the bytes are a whole key of that type that OpenSSH accepts."""
    if not blob.startswith(len(kind).to_bytes(4) + kind.encode()):
        raise _refused(f"the key is not of the type {kind} that stands in front of it")
    try:
        key = load_ssh_public_key(f"{kind} {base64.b64encode(blob).decode()}".encode())
    except (ValueError, NotImplementedError, UnsupportedAlgorithm) as error:
        reason = str(error).partition(" (")[0]
        raise _refused(f"the key is cut or damaged: {reason}") from None
    if isinstance(key, rsa.RSAPublicKey):
        _check_size(key)


def _check_size(key: rsa.RSAPublicKey) -> None:
    bits = key.key_size
    if bits < MIN_RSA_BITS:
        raise _refused(
            f"an RSA key needs at least {MIN_RSA_BITS} bits, this one has {bits}: ssh-keygen -t ed25519 makes a better",
            bits=bits,
            limit=MIN_RSA_BITS,
        )
    if bits > MAX_RSA_BITS:
        raise _refused(f"an RSA key has at most {MAX_RSA_BITS} bits, this one {bits}", bits=bits, limit=MAX_RSA_BITS)


def _refused(why: str, **numbers: int) -> Invalid:
    return Invalid(why, field="public_key", **numbers)
