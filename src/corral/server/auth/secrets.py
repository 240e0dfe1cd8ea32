"""Tokens and session ids: how they are generated, and how they are hashed for the store."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "corral_"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TOKEN_BYTES = 32
#: 32 bytes in base 62, padded so that every token has the same length
_TOKEN_DIGITS = 43


def new_token() -> str:
    """A bearer token. Its prefix lets secret scanners find leaked tokens."""
    number = int.from_bytes(secrets.token_bytes(_TOKEN_BYTES))
    digits = []
    for _ in range(_TOKEN_DIGITS):
        number, rest = divmod(number, 62)
        digits.append(_BASE62[rest])
    return TOKEN_PREFIX + "".join(reversed(digits))


def new_session_id() -> str:
    return secrets.token_urlsafe(32)


def new_csrf_token() -> str:
    return secrets.token_urlsafe(24)


def new_credential_id() -> str:
    return f"c-{secrets.token_hex(8)}"


def new_key_id() -> str:
    return f"k-{secrets.token_hex(8)}"


def secret_hash(secret: str) -> str:
    """SHA-256 is enough for secrets with 256 random bits: they cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
