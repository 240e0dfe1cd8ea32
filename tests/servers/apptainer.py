"""A real Apptainer, built once from its sources, and images made on the spot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.servers.images import BUSYBOX

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "build-test-apptainer"
NEEDED = ("mksquashfs", "unsquashfs", "cc", "make")
HOW_TO_INSTALL = (
    "Apptainer cannot be built, or this is not root: run scripts/install-test-servers as root "
    "(Debian packages: squashfs-tools squashfuse gcc libc6-dev make)"
)
HOW_TO_BUILD = "Apptainer cannot be built: let Go reach its module proxy, and run scripts/build-test-apptainer"


def can_be_built() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, NEEDED)) and bool(BUSYBOX)


needs_apptainer = pytest.mark.skipif(not can_be_built(), reason=HOW_TO_INSTALL)


def apptainer() -> str:
    """The program, which scripts/system-tests has built before the tests; else it is built now, which takes minutes."""
    done = subprocess.run([str(SCRIPT)], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        pytest.skip(HOW_TO_BUILD)
    return f"{done.stdout.strip()}/bin/apptainer"


def busybox_file(program: str, directory: Path) -> Path:
    """A .sif file with busybox, made of a directory."""
    root = directory / "root"
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp", "var/tmp"):
        (root / name).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    assert BUSYBOX is not None
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for name in ("sh", "cat", "echo", "env", "grep", "head", "id", "ls", "pwd", "sleep", "touch", "tr"):
        (root / "bin" / name).symlink_to("busybox")
    target = directory / "busybox.sif"
    done = subprocess.run([program, "build", str(target), str(root)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target
