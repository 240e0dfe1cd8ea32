"""An image made on the spot from a static busybox: no registry, no network."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

PODMAN = shutil.which("podman")
BUSYBOX = shutil.which("busybox")
_COMMANDS = (
    "sh",
    "sleep",
    "echo",
    "cat",
    "id",
    "env",
    "ls",
    "pwd",
    "touch",
    "kill",
    "tr",
    "head",
    "mkdir",
    "stat",
    "dd",
)


def _is_static(program: str | None) -> bool:
    """No program interpreter is named in it, so nothing else has to be in the image."""
    return program is not None and b"ld-linux" not in Path(program).read_bytes()[:4096]


def _problem() -> str:
    """Why no container can be made here; "" if it can."""
    if PODMAN is None or not _is_static(BUSYBOX):
        return "install podman, runc and busybox-static"
    if os.geteuid() == 0:
        return ""
    done = subprocess.run([PODMAN, "unshare", "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"podman needs root, or uidmap and a line in /etc/subuid for this account: {done.stderr.strip()[-200:]}"
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "this kernel has control groups v1, where podman limits containers for root only"
    return ""


needs_podman = pytest.mark.skipif(bool(_problem()), reason=_problem())


def busybox_layer() -> bytes:
    """The files of the image, as a tar archive."""
    assert BUSYBOX is not None
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(BUSYBOX, "bin/busybox")
        for name in _COMMANDS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return archive.getvalue()


@contextmanager
def busybox_image() -> Iterator[str]:
    """The address of an image that only this run knows; removed at the end."""
    assert PODMAN is not None
    address = f"localhost/corral-test-{uuid4().hex[:12]}:1"
    subprocess.run([PODMAN, "import", "-", address], input=busybox_layer(), check=True, capture_output=True)
    try:
        yield address
    finally:
        subprocess.run([PODMAN, "rmi", "--force", address], check=False, capture_output=True)


def containers(name_part: str) -> list[str]:
    """The names of all containers with this in it, running or not."""
    assert PODMAN is not None
    listed = subprocess.run(
        [PODMAN, "ps", "--all", "--format", "{{.Names}}"], check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split() if name_part in name]
