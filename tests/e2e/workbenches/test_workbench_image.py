"""Workbenches in images, under a real Podman: one that has what is needed, and one that has not."""

from __future__ import annotations

import io
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.e2e.workbench_steps import ECHO, create, token, until_state
from tests.servers.corral_server import CorralServer
from tests.servers.images import PODMAN, busybox_image, busybox_layer, needs_podman

pytestmark = [pytest.mark.slow, needs_podman]


def python_layer() -> bytes:
    """The files of a small image: busybox, this machine's Python with its libraries, and a stand-in for Jupyter."""
    interpreter = Path(sys.executable).resolve()
    modules = Path(sysconfig.get_path("stdlib"))
    binaries = [interpreter, *modules.glob("lib-dynload/*.so")]
    listed = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    libraries = {
        word for line in listed.splitlines() for word in line.split() if word.startswith("/") and word[-1] != ":"
    }
    archive = io.BytesIO(busybox_layer())
    with tarfile.open(fileobj=archive, mode="a") as tar:
        for path in sorted({*libraries, str(interpreter)}):
            tar.add(Path(path).resolve(), path)
        tar.add(modules, modules, filter=_without_packages)
        link = tarfile.TarInfo("bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(interpreter)
        tar.addfile(link)
        body = ECHO.replace("/usr/bin/env python3", "/bin/python3").encode()
        program = tarfile.TarInfo("bin/jupyter-lab")
        program.size, program.mode = len(body), 0o755
        tar.addfile(program, io.BytesIO(body))
    return archive.getvalue()


def _without_packages(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = ("site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__", "ensurepip")
    return None if Path(entry.name).name in left_out or "config-3" in entry.name else entry


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    assert PODMAN is not None
    address = f"localhost/corral-test-{uuid4().hex[:12]}:1"
    command = [PODMAN, "import", "--change", "ENV PATH=/bin", "-", address]
    subprocess.run(command, input=python_layer(), check=True, capture_output=True)
    yield address
    subprocess.run([PODMAN, "rmi", "--force", address], check=False, capture_output=True)


def test_a_workbench_in_an_image_is_reached_like_any_other(server: CorralServer, image: str) -> None:
    view = create(server, "ann", "boxed", gpus=1, image=image)
    answer = httpx.get(f"{view['jupyter']['address']}echo", headers=token(server, "ann"))
    assert answer.status_code == 200
    assert server.token("ann") not in answer.text
    assert httpx.get(f"{view['jupyter']['address']}echo", headers=token(server, "bob")).status_code == 403
    with server.http("ann") as http:
        http.post("/workbenches/boxed/stop").raise_for_status()
    until_state(server, "ann", "boxed", "stopped")


def test_an_image_without_the_needed_programs_is_reported(server: CorralServer, image: str) -> None:
    with busybox_image() as bare, server.http("ann") as http:
        http.post("/workbenches", json={"name": "bare-box", "image": bare}).raise_for_status()
        failed = until_state(server, "ann", "bare-box", "failed")
        assert failed["job"]["end_reason"] == "launch_error"
        assert "no python3" in failed["message"]
    with server.http("ann") as http:
        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBqYfEUbQ0KlT5H3eGmdAjRLTNqyHGSgY2X2sWq1uVQ1"
        http.post("/me/ssh-keys", json={"name": "boxed", "public_key": key}).raise_for_status()
        body = {"name": "no-sshd-box", "image": image, "ssh": True, "jupyter": False}
        http.post("/workbenches", json=body).raise_for_status()
        failed = until_state(server, "ann", "no-sshd-box", "failed")
        assert "no SSH server" in failed["message"]
