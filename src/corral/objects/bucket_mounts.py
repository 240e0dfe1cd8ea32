"""Mounts buckets on this node: each once, whatever the number of jobs that use it, and as long as a job uses it.

    <directory>/mount        the mount point
    <directory>/users/       a file for every user: the path of a file that this user keeps locked
    <directory>/starting     locked by a process that starts or ends it
    <directory>/keeper       locked by the process that keeps it mounted
    <directory>/problem      why it could not be mounted
    <directory>/log

A keeper holds the secrets in memory, starts the process that serves the files, starts it again when it dies, and ends
both when no job has used the bucket for a while. It is independent of the server and of all jobs, so that it does not
end with one of them. If the keeper is killed, the mount ends with it, and the next job that needs it starts another.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import corral
from corral.objects.access import ObjectAccess

log = logging.getLogger("corral.objects.bucket_mounts")

MOUNT = "mount"
#: In the environment of keepers, so that they can be found.
DIRECTORY_VARIABLE = "CORRAL_OBJECTS_DIR"
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.5
#: A serving process that dies this often within a minute is not started again.
_MOST_DEATHS = 5
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class CannotMount(Exception):
    """The bucket could not be mounted; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MountOrder:
    #: the bucket's own directory, below the node's directory of mounts
    directory: str
    access: Mapping[str, str]
    writable: bool
    cache: str
    cache_bytes: int
    linger_seconds: float


def fuse_problem() -> str:
    """Why nothing can be mounted by FUSE here; "" if it can."""
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "this account may not open /dev/fuse: an administrator runs `chmod 666 /dev/fuse`"
    if os.geteuid() != 0 and shutil.which("fusermount3") is None and shutil.which("fusermount") is None:
        return "there is no fusermount3: install the package fuse3"
    try:
        import mfusepy  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: the library itself is missing
        return f"corral was installed without fuse: pip install 'corral[fuse]' and the package libfuse3 ({error})"
    return ""


def directory_of(root: str, access: ObjectAccess, *, writable: bool) -> str:
    """Other keys to the same bucket have another directory: a user never gets files that another user's key opened."""
    name = json.dumps({**access.to_dict(), "writable": writable}, sort_keys=True)
    return os.path.join(root, hashlib.sha256(name.encode()).hexdigest()[:16])


def ensure_mounted(order: MountOrder, *, user: str, lock_path: str) -> str:
    """The directory of the bucket's files, valid while `lock_path` stays locked by its user. Raises CannotMount. May
    take long, and may be repeated at any time."""
    directory = order.directory
    mount = os.path.join(directory, MOUNT)
    for path in (mount, os.path.join(directory, "users")):
        with contextlib.suppress(OSError):  # a mount whose process died does not answer: it is unmounted below
            os.makedirs(path, mode=0o700, exist_ok=True)
    with _locked(os.path.join(directory, "starting")):
        Path(directory, "users", user).write_text(lock_path)
        if is_mounted(mount):
            return mount
        Path(directory, "problem").unlink(missing_ok=True)
        keeper = _start(order)
        deadline = time.monotonic() + _START_SECONDS
        while not is_mounted(mount):
            problem = Path(directory, "problem")
            if problem.exists():
                raise CannotMount(problem.read_text())
            # A keeper that ends without a message found another one, which is about to mount it again.
            if time.monotonic() > deadline:
                state = "is gone" if keeper.poll() is not None else "runs"
                raise CannotMount(f"nothing was mounted within {_START_SECONDS:g} s; its keeper {state}")
            time.sleep(0.02)
    return mount


def is_mounted(mount: str) -> bool:
    """Whether the mount answers."""
    try:
        # The second call reaches the serving process each time; the kernel caches the first for a while.
        return os.stat(mount).st_dev != os.stat(os.path.dirname(mount)).st_dev and os.statvfs(mount).f_blocks > 0
    except OSError:
        return False


def _start(order: MountOrder) -> subprocess.Popen[bytes]:
    with open(os.path.join(order.directory, "log"), "wb") as output:
        return _spawn("keep", asdict(order), output.fileno(), os.environ | {DIRECTORY_VARIABLE: order.directory})


def _spawn(entry: str, orders: Mapping[str, Any], output: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process of its own, which gets its orders through a pipe: they hold secrets."""
    package_root = str(Path(corral.__file__).resolve().parent.parent)
    code = (
        f"import sys; sys.path.insert(0, {package_root!r}); from corral.objects.bucket_mounts import {entry}; {entry}()"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        cwd="/",
        env=dict(env),
        start_new_session=True,
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(orders).encode())
        process.stdin.close()
    return process


# ------------------------------------------------------------------------------------------------ the keeper


def keep() -> None:
    """The keeper's process."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    orders = json.load(sys.stdin)
    lock = os.open(os.path.join(orders["directory"], "keeper"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    _Keeper(orders).run()


class _Keeper:
    def __init__(self, orders: Mapping[str, Any]) -> None:
        self._orders = orders
        self._directory: str = orders["directory"]
        self._mount = os.path.join(self._directory, MOUNT)
        self._deaths: list[float] = []
        self._used_at = time.monotonic()

    def run(self) -> None:
        server = self._serve()
        while True:
            time.sleep(_LOOK_SECONDS)
            if server.poll() is not None:
                if not self._may_serve_again(server.returncode):
                    return
                server = self._serve()
            if self._has_users():
                self._used_at = time.monotonic()
            elif time.monotonic() - self._used_at >= self._orders["linger_seconds"] and self._end(server):
                return

    def _serve(self) -> subprocess.Popen[bytes]:
        detach(self._mount)
        os.makedirs(self._mount, mode=0o755, exist_ok=True)
        return _spawn("serve", self._orders, 2, os.environ)

    def _may_serve_again(self, code: int) -> bool:
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < 60.0] + [now]
        log.warning("the process that serves the bucket ended with code %d", code)
        if len(self._deaths) < _MOST_DEATHS:
            return True
        last = Path(self._directory, "log").read_text(errors="replace").strip().rpartition("\n")[2]
        Path(self._directory, "problem").write_text(f"the process that serves it dies repeatedly: {last}")
        detach(self._mount)
        return False

    def _has_users(self) -> bool:
        """Removes users that are gone."""
        users = Path(self._directory, "users")
        alive = False
        for user in users.iterdir():
            if _is_locked(user.read_text()):
                alive = True
            else:
                user.unlink(missing_ok=True)
        return alive

    def _end(self, server: subprocess.Popen[bytes]) -> bool:
        """False if a user came in the last moment."""
        with _locked(os.path.join(self._directory, "starting")):
            if self._has_users():
                self._used_at = time.monotonic()
                return False
            detach(self._mount)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                # A process of a namespace without a job still holds files open in it.
                server.kill()
                server.wait()
            return True


def serve() -> None:
    """The process that serves the files; it dies with its keeper."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(name)s: %(message)s")
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    from corral.objects.bucket import Bucket
    from corral.objects.cache import BlockCache
    from corral.objects.fuse_mount import mount

    orders = json.load(sys.stdin)
    staging = os.path.join(orders["directory"], "staging")
    os.makedirs(staging, mode=0o700, exist_ok=True)
    bucket = Bucket(ObjectAccess.from_dict(orders["access"]), BlockCache(orders["cache"], orders["cache_bytes"]))
    where = os.path.join(orders["directory"], MOUNT)
    mount(bucket, where, writable=orders["writable"], staging=staging, is_root=os.geteuid() == 0)
    # Threads that prefetch must not keep the process alive.
    os._exit(0)


# ------------------------------------------------------------------------------------------------ small things


def detach(mount: str) -> None:
    """Unmounts everything there, even if the serving process is dead."""
    if os.geteuid() == 0:
        while _libc.umount2(os.fsencode(mount), _MNT_DETACH) == 0:
            continue
        return
    for program in ("fusermount3", "fusermount"):
        if shutil.which(program):
            subprocess.run([program, "-u", "-z", mount], check=False, capture_output=True)
            return


def _is_locked(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def _locked(path: str) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
