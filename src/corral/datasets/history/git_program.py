"""Runs the program `git`: without prompts, without the settings of users, and without showing the token."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from corral.datasets.errors import BadName, GitFailed

_URL = re.compile(r"(https?|ssh|file)://\S+|/\S+|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:\S+")
_TIMEOUT_SECONDS = 300.0
# Git calls this for a password. The shell that runs it takes the token from the environment: it is in no argument.
_HELPER = '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$CORRAL_GIT_USER" "$CORRAL_GIT_TOKEN"; }; f'


def check_url(url: str) -> str:
    """Raises `BadName` for an invalid address of a repository, or one that holds a password."""
    if not _URL.fullmatch(url):
        raise BadName("the address of a Git repository begins with https://, http://, ssh://, file:// or /")
    if re.match(r"https?://[^/@]*:[^/@]*@", url):
        raise BadName("the address holds a password: give it as the token, so that it is not shown")
    return url


class GitProgram:
    """One bare repository, and the connection to its origin."""

    def __init__(self, folder: Path, url: str, *, token: str = "", user: str = "corral") -> None:
        self.folder = folder
        self.url = check_url(url)
        self._token = token
        self._user = user

    def __call__(
        self, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None, allowed: Sequence[int] = (0,)
    ) -> bytes:
        """The output of git. Raises `GitFailed` with its message for exit codes that are not allowed."""
        try:
            done = subprocess.run(
                ["git", "--git-dir", str(self.folder), *arguments],
                input=data,
                capture_output=True,
                env=self._environment() | dict(env or {}),
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise GitFailed("the program git is not installed") from None
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {arguments[0]} of {self.url} took more than {_TIMEOUT_SECONDS:.0f} s") from None
        if done.returncode not in allowed:
            raise GitFailed(f"git {arguments[0]} of {self.url} failed: {self._clean(done.stderr)}")
        return done.stdout

    def text(self, *arguments: str, env: Mapping[str, str] | None = None, allowed: Sequence[int] = (0,)) -> str:
        return self(*arguments, env=env, allowed=allowed).decode("utf-8", "replace").strip()

    def _clean(self, output: bytes) -> str:
        text = output.decode("utf-8", "replace").strip()
        return text.replace(self._token, "***") if self._token else text

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR") if name in os.environ}
        settings = [
            # An empty helper first: credential helpers of this machine are not used, and do not store our token.
            ("credential.helper", ""),
            ("credential.helper", _HELPER if self._token else ""),
            ("core.hooksPath", "/dev/null"),
            ("gc.auto", "0"),
            ("safe.bareRepository", "all"),
        ]
        numbered: dict[str, str] = {}
        for number, (key, value) in enumerate(settings):
            numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return {
            **kept,
            **numbered,
            "GIT_CONFIG_COUNT": str(len(settings)),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_ALLOW_PROTOCOL": "https:http:ssh:file",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "LC_ALL": "C.UTF-8",
            "CORRAL_GIT_USER": self._user,
            "CORRAL_GIT_TOKEN": self._token,
        }
