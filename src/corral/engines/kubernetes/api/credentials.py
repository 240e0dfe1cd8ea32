"""Bearer tokens for the API server, including those that change: token files and exec plugins."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

#: The kubelet replaces the token of a service account long before it expires.
FILE_SECONDS = 60.0
#: A token is replaced this long before it expires.
SPARE_SECONDS = 60.0
#: An exec plugin may ask another system.
PLUGIN_SECONDS = 60.0


class CredentialError(Exception):
    """No token can be had at this moment; the message gives the reason."""


class Credential(Protocol):
    def token(self) -> str:
        """The token to send; "" for none. May take long. Raises CredentialError."""

    def refuse(self, token: str) -> None:
        """The API server did not accept this token: the next call gets a new one."""


class NoToken:
    def token(self) -> str:
        return ""

    def refuse(self, token: str) -> None:
        """Does nothing: there is no token to replace."""


@dataclass(frozen=True, slots=True)
class StaticToken:
    value: str = field(repr=False)

    def token(self) -> str:
        return self.value

    def refuse(self, token: str) -> None:
        """Does nothing: there is no other token."""


class TokenFile:
    """A file that another program keeps up to date, such as the kubelet for service accounts."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at = float("-inf")

    def token(self) -> str:
        if self._clock() - self._read_at >= FILE_SECONDS:
            try:
                self._token = self._path.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise CredentialError(f"token file {self._path}: {error.strerror}") from error
            self._read_at = self._clock()
        return self._token

    def refuse(self, token: str) -> None:
        if token == self._token:
            self._read_at = float("-inf")


class ExecPlugin:
    """A program that prints an ExecCredential, such as `aws eks get-token`. Safe for several threads."""

    def __init__(
        self,
        *,
        command: tuple[str, ...],
        env: Mapping[str, str],
        api_version: str,
        hint: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._command = command
        self._env = env
        self._api_version = api_version
        self._hint = hint
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._until = float("-inf")

    def token(self) -> str:
        with self._lock:
            if self._clock() >= self._until:
                self._token, self._until = self._ask()
            return self._token

    def refuse(self, token: str) -> None:
        with self._lock:
            if token == self._token:
                self._until = float("-inf")

    def _ask(self) -> tuple[str, float]:
        """The token, and until when it can be used."""
        info = {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        env = {**os.environ, **self._env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        name = self._command[0]
        try:
            done = subprocess.run(
                self._command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PLUGIN_SECONDS
            )
        except OSError as error:
            hint = f"; {self._hint}" if self._hint else ""
            raise CredentialError(f"exec plugin {name}: {error.strerror}{hint}") from error
        except subprocess.TimeoutExpired as error:
            raise CredentialError(f"exec plugin {name}: no answer within {PLUGIN_SECONDS:g} s") from error
        if done.returncode != 0:
            errors = done.stderr.decode(errors="replace").strip()[-300:]
            raise CredentialError(f"exec plugin {name}: exit code {done.returncode}: {errors}")
        return _parsed(name, done.stdout)


def _parsed(name: str, output: bytes) -> tuple[str, float]:
    try:
        status: Mapping[str, Any] = json.loads(output)["status"]
        token = status["token"]
        expires = status.get("expirationTimestamp")
        until = datetime.fromisoformat(expires).timestamp() - SPARE_SECONDS if expires else float("inf")
    except (ValueError, KeyError, TypeError) as error:
        raise CredentialError(f"exec plugin {name}: printed no ExecCredential with a token") from error
    if not isinstance(token, str) or not token:
        raise CredentialError(f"exec plugin {name}: printed no token")
    return token, until
