"""Accounts of the machine that tests make and remove again."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def temporary_account(name: str, uid: int) -> Iterator[pwd.struct_passwd]:
    """A person's account, gone afterwards. Skips where only root could make one."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("only root can make an account, with useradd of Debian's package passwd: run as root")
    subprocess.run(["useradd", "--no-create-home", "--uid", str(uid), name], check=True, capture_output=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        # Jobs outlive their server. A killed process exists a moment longer, and userdel refuses such an account
        # without --force.
        subprocess.run(["pkill", "-KILL", "-U", str(uid)], check=False, capture_output=True)
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)
