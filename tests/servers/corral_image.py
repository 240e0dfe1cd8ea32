"""corral's own image, built as deploy/container/Containerfile says, from a Debian that debootstrap makes.

The Debian is kept in the user's cache, as making it takes a minute.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).parents[2]
CONTAINERFILE = Path("deploy") / "container" / "Containerfile"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
#: what this machine trusts, which may be more than Debian does
TRUSTED = os.environ.get("SSL_CERT_FILE", CERTIFICATES)
HOW_TO_INSTALL = (
    "podman, runc or debootstrap is not installed, or this is not root: run scripts/install-test-servers as root "
    "(Debian packages: podman runc debootstrap)"
)


def can_build() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("podman", "runc", "debootstrap")))


def podman(*words: object, check: bool = True, cwd: Path = ROOT) -> str:
    # crun, which is the default, refuses to start where both versions of control groups are mounted.
    command = ["podman", "--runtime", "runc", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout.strip()


def own_limits() -> list[str]:
    """The limits of this process: if it may not raise them, containers do not start with Podman's own defaults."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = min(resource.getrlimit(resource.RLIMIT_NPROC)[1], int(Path("/proc/sys/kernel/pid_max").read_text()))
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]


@contextmanager
def corral_image(scratch: Path) -> Iterator[str]:
    """The address of an image that only this run knows; removed at the end."""
    context = scratch / "context"
    (context / CONTAINERFILE.parent).mkdir(parents=True)
    for path in (CONTAINERFILE, Path(f"{CONTAINERFILE}.dockerignore"), Path("requirements-runtime.lock")):
        shutil.copy(ROOT / path, context / path)
    _build_wheel(context / "dist")
    base, address = (f"localhost/corral-test-{uuid4().hex[:12]}:{kind}" for kind in ("base", "1"))
    podman("import", _debian(scratch), base)
    # Where a proxy of the site signs what comes from PyPI, pip must know its certificate.
    settings = scratch / "pip.conf"
    settings.write_text(f"[global]\ncert = {CERTIFICATES}\n")
    site = [f"--volume={TRUSTED}:{CERTIFICATES}:ro", f"--volume={settings}:/etc/pip.conf:ro"]
    try:
        podman("build", "--network=host", *site, f"--build-arg=BASE={base}", f"--tag={address}",
               f"--file={CONTAINERFILE}", ".", cwd=context)  # fmt: skip
        yield address
    finally:
        podman("rmi", "--force", address, base, check=False)


def _build_wheel(target: Path) -> None:
    # The console is another test's subject; without it no Node.js is needed here.
    environ = {**os.environ, "CORRAL_BUILD_CONSOLE": "never"}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={target}", str(ROOT)]
    if uv := shutil.which("uv"):
        command = [uv, "build", "--quiet", "--wheel", f"--out-dir={target}", str(ROOT)]
    subprocess.run(command, env=environ, check=True, capture_output=True)


def _debian(scratch: Path) -> Path:
    archive = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "corral-tests" / "debian-12.tar"
    if not archive.exists():
        root, made = scratch / "debian", scratch / "debian.tar"
        packages = "--include=ca-certificates,python3-venv,tini"
        subprocess.run(
            ["debootstrap", "--variant=minbase", packages, "bookworm", root], check=True, capture_output=True
        )
        subprocess.run(["tar", "-C", root, "-cf", made, "."], check=True)
        shutil.rmtree(root)
        archive.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, archive)
    return archive
