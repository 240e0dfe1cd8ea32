"""The requirements of a workbench: its account, its environment, and the programs of Jupyter and SSH."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from pathlib import Path

_JUPYTER_PROGRAMS = ("jupyter-lab", "jupyter-notebook", "jupyter-server")
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def environment(base: Mapping[str, str], venv: str | None) -> dict[str, str]:
    """The environment of a workbench: with a virtual environment or conda prefix, its programs come first."""
    env = dict(base)
    if venv:
        programs = os.path.join(venv, "bin")
        path = env.get("PATH", "").split(os.pathsep)
        env["PATH"] = os.pathsep.join([programs, *(part for part in path if part and part != programs)])
        env["VIRTUAL_ENV"] = venv
    return env


def with_home(env: Mapping[str, str], root: Path) -> dict[str, str]:
    """An account without a home of its own, such as `nobody`, keeps its settings in the working directory."""
    home = env.get("HOME", "")
    has_home = home not in ("", "/") and os.access(home, os.W_OK | os.X_OK)
    return dict(env) if has_home else {**env, "HOME": str(root)}


def account_name() -> str:
    """The name of the own account. In an image the account may have none; then it cannot log in either."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid{os.getuid()}"


def may_log_in() -> bool:
    """SSH starts the account's own shell, which refuses logins for service accounts."""
    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return False
    return os.path.basename(shell) not in ("nologin", "false") and os.access(shell, os.X_OK)


def find_jupyter(env: Mapping[str, str]) -> str | None:
    return next(filter(None, (shutil.which(name, path=env.get("PATH")) for name in _JUPYTER_PROGRAMS)), None)


def find_sshd(env: Mapping[str, str]) -> str | None:
    """Finds an SSH server, if the program that makes its key is installed, too. It must be called by its full path, and
    is not in the PATH of users.
    """
    return find_system_program("sshd", env) if find_system_program("ssh-keygen", env) else None


def find_system_program(name: str, env: Mapping[str, str]) -> str | None:
    """The program in the PATH or in the directories of system programs."""
    return shutil.which(name, path=os.pathsep.join([env.get("PATH", ""), *_SBIN]))
