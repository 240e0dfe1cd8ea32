"""The default server, and the file of stored tokens: one token per server, readable by the file's owner only.

This module decides the path and the format of the file. Permissions are checked by the server.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.client.http.errors import CredentialsUnreadable

FILE_NAME = "credentials.json"
DEFAULT_PORT = "8470"


@dataclass(frozen=True, kw_only=True, slots=True)
class Credential:
    user: str
    token: str


def default_path(env: Mapping[str, str]) -> Path:
    """Under CORRAL_HOME if that is set, else in the user's config directory."""
    home = env.get("CORRAL_HOME")
    if home:
        return Path(home).expanduser() / FILE_NAME
    config = env.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "corral" / FILE_NAME


def default_server(env: Mapping[str, str]) -> str:
    """CORRAL_SERVER, else the server of this machine, at CORRAL_PORT or the default port."""
    return env.get("CORRAL_SERVER") or f"http://127.0.0.1:{env.get('CORRAL_PORT') or DEFAULT_PORT}"


def default_token(env: Mapping[str, str], server: str) -> str | None:
    """CORRAL_TOKEN, else the token that is stored for this server."""
    if env.get("CORRAL_TOKEN"):
        return env["CORRAL_TOKEN"]
    file = CredentialFile(default_path(env))
    # Servers over one store know the same tokens.
    found = (file.get(address) for address in dict.fromkeys([server, *server.split(",")]))
    return next((stored.token for stored in found if stored is not None), None)


class CredentialFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, server: str) -> Credential | None:
        return self._read().get(server)

    def put(self, server: str, credential: Credential) -> None:
        self._write({**self._read(), server: credential})

    def remove(self, server: str) -> Credential | None:
        """Return the removed credential, or None if none was stored for this server."""
        stored = self._read()
        removed = stored.pop(server, None)
        if removed is not None:
            self._write(stored)
        return removed

    def _read(self) -> dict[str, Credential]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(str(error)) from error
        try:
            return {server: _credential(entry) for server, entry in json.loads(text)["servers"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreadable("it is not a credentials file") from error

    def _unreadable(self, reason: str) -> CredentialsUnreadable:
        return CredentialsUnreadable(
            f"cannot read the stored tokens in {self.path}: {reason}",
            hint=f"Remove the file (rm {self.path}) and sign in again: `corral login`.",
        )

    def _write(self, stored: Mapping[str, Credential]) -> None:
        """Replace the whole file, so that a crash leaves the old file or the new one, never half of one."""
        document = {"servers": {server: {"user": c.user, "token": c.token} for server, c in stored.items()}}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # mkstemp creates the file with mode 600
            handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{FILE_NAME}.")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(document, file, indent=2)
                    file.write("\n")
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self.path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise CredentialsUnreadable(
                f"cannot store the token in {self.path}: {error.strerror or error}",
                hint="Make the directory writable, or set CORRAL_HOME to one that is.",
            ) from error


def _credential(entry: Any) -> Credential:
    user, token = entry["user"], entry["token"]
    if not isinstance(user, str) or not isinstance(token, str):
        raise TypeError("user and token are text")
    return Credential(user=user, token=token)
