"""Images for the nodes of a test cluster, made from local files: no registry, no network."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

BUSYBOX_IMAGE = "docker.io/corral-tests/busybox:1"
PAUSE_IMAGE = "docker.io/corral-tests/pause:1"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_images(directory: Path) -> None:
    """One with all commands of busybox, and the one that holds the namespaces of a pod."""
    directory.mkdir(exist_ok=True)
    layer = _busybox_layer()
    _write_archive(directory / "busybox.tar", BUSYBOX_IMAGE, ["sh"], layer)
    _write_archive(directory / "pause.tar", PAUSE_IMAGE, ["sleep", "2147483647"], layer)


def _busybox_layer() -> bytes:
    program = shutil.which("busybox")
    assert program is not None
    names = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in ("bin", "etc", "tmp", "root", "home", "var", "usr/bin"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        tar.add(program, "bin/busybox")
        for name in names:
            if name != "busybox":
                _add_link(tar, f"bin/{name}", "busybox")
        _add_link(tar, "usr/bin/env", "../../bin/busybox")
        accounts = b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home:/bin/sh\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(accounts)
        tar.addfile(entry, io.BytesIO(accounts))
    return archive.getvalue()


def _add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    tar.addfile(link)


def _write_archive(path: Path, name: str, command: list[str], layer: bytes) -> None:
    """In the format of `docker save`, which containerd imports."""
    layer_hash = hashlib.sha256(layer).hexdigest()
    settings = {
        "architecture": _MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin:/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_hash}"]},
    }
    config = json.dumps(settings).encode()
    config_name, layer_name = f"{hashlib.sha256(config).hexdigest()}.json", f"{layer_hash}/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [layer_name]}]).encode()
    with tarfile.open(path, "w") as tar:
        for file, content in ((config_name, config), (layer_name, layer), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
