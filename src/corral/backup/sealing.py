"""Encrypts the secrets of a backup (the key file and the configuration) with a passphrase."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from corral.backup.errors import BackupError

#: Costs 64 MiB of memory and a fraction of a second.
_COST = {"n": 2**16, "r": 8, "p": 1}


def seal(secrets: Mapping[str, str], passphrase: str) -> dict[str, Any]:
    salt = os.urandom(16)
    token = Fernet(_key(passphrase, salt, _COST)).encrypt(json.dumps(dict(secrets)).encode())
    return {"kind": "scrypt", "salt": salt.hex(), **_COST, "token": token.decode("ascii")}


def unseal(sealed: Mapping[str, Any], passphrase: str) -> dict[str, str]:
    """Raises BackupError for a wrong passphrase."""
    cost = {name: int(sealed[name]) for name in _COST}
    try:
        text = Fernet(_key(passphrase, bytes.fromhex(sealed["salt"]), cost)).decrypt(sealed["token"].encode("ascii"))
    except InvalidToken:
        raise BackupError("the passphrase is wrong") from None
    secrets: dict[str, str] = json.loads(text)
    return secrets


def _key(passphrase: str, salt: bytes, cost: Mapping[str, int]) -> bytes:
    return base64.urlsafe_b64encode(Scrypt(salt=salt, length=32, **cost).derive(passphrase.encode()))
