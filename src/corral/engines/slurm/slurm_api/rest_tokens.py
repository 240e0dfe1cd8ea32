"""The token for slurmrestd: read from a file or made by a command, renewed in time, and never logged.

A token contains its own expiry time. A token that is about to expire is fetched again before it is used, so that a
program that renews the file (cron, an agent for secrets) need not notify corral.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corral.engines.slurm.slurm_api.commands import SlurmUnavailable

#: A token that expires within this time is fetched again: the clocks of two machines differ.
SPARE_SECONDS = 30.0
#: The command is not run more often than this, even if tokens are refused.
PAUSE_SECONDS = 10.0
PATIENCE_SECONDS = 20.0
_SHAPE = re.compile(r"[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    #: not in its representation, so that it is not logged by mistake
    text: str = field(repr=False)
    #: the token's user; "" if it names none
    user: str = ""
    expires_at: float | None = None


class Tokens:
    """The source of tokens. Safe for several threads. Raises SlurmUnavailable, without any part of the token."""

    def __init__(
        self,
        *,
        file: str | None = None,
        command: Sequence[str] = (),
        conf: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Without file and command, slurmrestd is called without a token, as its socket allows. `conf` is Slurm's own
        configuration, for a command that is one of Slurm's."""
        self._file = file
        self._command = tuple(command)
        self._conf = conf
        self._now = now
        self._lock = threading.Lock()
        self._known: Token | None = None
        self._fetched_at = 0.0

    def current(self) -> Token | None:
        with self._lock:
            if self._known is None or self._is_old(self._known):
                self._fetch()
            return self._known

    def renew(self, refused: Token | None) -> bool:
        """Whether there is a token other than the refused one."""
        with self._lock:
            if self._known == refused:
                self._fetch()
            return self._known != refused

    def _is_old(self, token: Token) -> bool:
        return token.expires_at is not None and self._now() > token.expires_at - SPARE_SECONDS

    def _fetch(self) -> None:
        if self._file is not None:
            self._known = parse_token(_read(self._file), f"the file {self._file}")
        elif self._command and (self._known is None or self._now() - self._fetched_at >= PAUSE_SECONDS):
            self._fetched_at = self._now()
            self._known = parse_token(_made_by(self._command, self._conf), f"the command {self._command[0]}")


def parse_token(text: str, source: str) -> Token:
    """The token alone, or the output of `scontrol token`."""
    token = text.strip().removeprefix("SLURM_JWT=").strip()
    if _SHAPE.fullmatch(token) is None:
        raise SlurmUnavailable(f"{source} gives no token: three parts with dots between them, and nothing else")
    claims = _claims(token)
    expires = claims.get("exp")
    return Token(
        text=token,
        user=str(claims.get("sun") or claims.get("username") or ""),
        expires_at=float(expires) if isinstance(expires, int | float) else None,
    )


def _claims(token: str) -> Mapping[str, Any]:
    """The claims in the token. Not verified: Slurm does that."""
    part = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SlurmUnavailable(f"the token file {path}: {error.strerror}") from None


def _made_by(command: Sequence[str], conf: str | None) -> str:
    """The output is a secret; the error message is not."""
    slurm = {"SLURM_CONF": conf} if conf else {}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", **slurm},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SlurmUnavailable(f"the token command {command[0]} did not end within {PATIENCE_SECONDS:g} s") from None
    except OSError as error:
        raise SlurmUnavailable(f"the token command {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        message = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        raise SlurmUnavailable(f"the token command {command[0]} ended with {done.returncode}: {message[:200]}")
    return done.stdout
