"""Encrypts secrets that the server needs in clear text (a provider's client secret) before they are stored.

The key is in a file beside the store, never in it: a copy of the database alone reveals no secret. The file has one key
per line; the first one encrypts, all of them decrypt, so that keys can be replaced without losing stored secrets.
"""

from __future__ import annotations

import base64
import hmac
import logging
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from corral.control.records import ProviderRecord

log = logging.getLogger("corral.server.auth.secret_box")

KEY_FILE = "secrets.key"
#: The fields of a provider that are stored encrypted.
SECRET_FIELDS = ("client_secret", "api_token")
_HEAD = "# Keys for the secrets in corral's store, newest first. Keep a copy of this file beside every backup.\n"


class SecretUnreadable(Exception):
    """A stored secret cannot be read; the message says how to fix it."""


class SecretBox:
    """Reads its file at every use: the file is small, rarely needed, and may be restored while the server runs."""

    def __init__(self, home: Path) -> None:
        self.path = home / KEY_FILE

    def encrypt(self, secret: str) -> str:
        """Creates the key file if there is none."""
        return self._keys(make=True)[0].encrypt(secret.encode()).decode("ascii")

    def decrypt(self, encrypted: str) -> str:
        keys = self._keys(make=False)
        try:
            return MultiFernet(keys).decrypt(encrypted.encode()).decode()
        except (InvalidToken, ValueError):
            raise SecretUnreadable(
                f"none of the keys in {self.path} fits: restore the file of this store, or give the secret again"
            ) from None

    def key_for(self, purpose: str) -> bytes:
        """A Fernet key for one purpose, derived from the newest key. Creates the key file if there is none."""
        self._keys(make=True)
        newest = self._lines()[0]
        return base64.urlsafe_b64encode(hmac.digest(newest.encode(), purpose.encode(), "sha256"))

    def is_current(self, encrypted: str) -> bool:
        """Whether it is encrypted with the newest key."""
        try:
            self._keys(make=False)[0].decrypt(encrypted.encode())
        except InvalidToken:
            return False
        return True

    def _keys(self, *, make: bool) -> Sequence[Fernet]:
        try:
            lines = self._lines()
        except FileNotFoundError:
            if not make:
                raise SecretUnreadable(
                    f"the key file {self.path} is missing: restore it from a backup, or give the secret again"
                ) from None
            lines = self._made()
        try:
            keys = [Fernet(line) for line in lines]
        except ValueError:
            raise SecretUnreadable(f"{self.path} holds something that is not a key: restore it") from None
        if not keys:
            raise SecretUnreadable(f"{self.path} holds no key: restore it, or delete it and give the secrets again")
        return keys

    def _lines(self) -> list[str]:
        with self.path.open(encoding="ascii", errors="replace") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise SecretUnreadable(f"{self.path} can be read by others: run chmod 600 {self.path}")
            return [line.strip() for line in file if line.strip() and not line.startswith("#")]

    def _made(self) -> list[str]:
        key = Fernet.generate_key().decode("ascii")
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return self._lines()
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_HEAD}{key}\n")
            file.flush()
            os.fsync(file.fileno())
        log.info("made the key file %s: keep a copy beside every backup of the store", self.path)
        return [key]


def renewed(providers: Iterable[ProviderRecord], box: SecretBox) -> dict[tuple[str, str], tuple[str, str]]:
    """Secrets that are encrypted with an older key, by provider and field: as stored, and encrypted with the newest
    key. A secret that cannot be read is logged and left unchanged."""
    found = {}
    for provider in providers:
        for field in SECRET_FIELDS:
            encrypted = getattr(provider, field)
            try:
                if encrypted and not box.is_current(encrypted):
                    found[provider.id, field] = (encrypted, box.encrypt(box.decrypt(encrypted)))
            except SecretUnreadable as error:
                log.error("the %s of sign-in provider %s cannot be read: %s", field, provider.id, error)
    return found
