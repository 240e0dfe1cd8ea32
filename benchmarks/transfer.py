"""`corral cp` between a directory and a volume of a server on the same machine: one large file, and many small ones.

The peer is `cp -r` of the same files to the same disk. `corral cp` sends every byte over HTTP, and both ends make its
checksum; on a network that is slower than the disk it loses less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.live import LiveServer, live_server
from benchmarks.tables import Row, median, print_table, spread
from corral.client.client import Client
from corral.client.http.retries import Persistence
from corral.client.storage.places import LocalSide, VolumeSide
from corral.client.storage.transfers import Transfer, prepared

MIB = 1024 * 1024
LARGE_BYTES = 256 * MIB
SMALL_FILES, SMALL_BYTES = 1000, 8 * 1024
RUNS = 3


class _Silent:
    def planned(self, files: int, size_bytes: int) -> None:
        pass

    def carried(self, size_bytes: int) -> None:
        pass

    def file_done(self) -> None:
        pass


def plain_copy(source: Path, target: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    return time.perf_counter() - begun


def make_volume(server: LiveServer) -> str:
    with server.client() as http:
        body = {"name": "bench", "type": "filesystem", "size": "100GiB"}
        volume = http.post("/volumes", json=body).raise_for_status().json()["id"]
        while http.get(f"/volumes/{volume}").json()["state"] != "ready":
            time.sleep(0.1)
    return str(volume)


def carried(
    client: Client, source: LocalSide | VolumeSide, target: LocalSide | VolumeSide, paths: tuple[str, str]
) -> float:
    begun = time.perf_counter()
    task = prepared(source, paths[0], target, paths[1], delete=False, by_content=False)
    summary = Transfer(Persistence(), _Silent()).run([task])
    assert summary.is_complete, summary.failed
    return time.perf_counter() - begun


def measured(client: Client, volume: str, source: Path, scratch: Path) -> dict[str, list[float]]:
    """Seconds of each run, in turns, so that what else the machine does hits all alike."""
    found = client.volume_files.find(volume)
    there = VolumeSide(client.volume_files, found, "", Persistence())
    seconds: dict[str, list[float]] = {"cp": [], "up": [], "down": []}
    for run in range(RUNS):
        seconds["cp"].append(plain_copy(source, scratch / f"cp-{run}"))
        seconds["up"].append(carried(client, LocalSide(source), there, ("", f"{source.name}-{run}")))
        seconds["down"].append(carried(client, there, LocalSide(scratch / f"down-{run}"), (f"{source.name}-{run}", "")))
        shutil.rmtree(scratch / f"cp-{run}")
        shutil.rmtree(scratch / f"down-{run}")
    return seconds


def rows(what: str, size_bytes: int, seconds: dict[str, list[float]]) -> list[Row]:
    peer = median(seconds["cp"])
    return [
        Row(
            what=f"{what}, {way}",
            value=f"{size_bytes / MIB / median(taken):.0f} MiB/s",
            spread=spread([size_bytes / MIB / one for one in taken], "MiB/s", 0),
            ratio="the peer" if way == "cp -r" else f"{peer / median(taken):.2f} × cp -r",
        )
        for way, taken in (("cp -r", seconds["cp"]), ("to a volume", seconds["up"]), ("from it", seconds["down"]))
    ]


def main() -> None:
    with live_server() as server, tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        large, small = scratch / "large", scratch / "small"
        large.mkdir()
        small.mkdir()
        (large / "file").write_bytes(os.urandom(MIB) * (LARGE_BYTES // MIB))
        for number in range(SMALL_FILES):
            (small / f"{number:05d}").write_bytes(os.urandom(SMALL_BYTES))
        volume = make_volume(server)
        with Client(server.url, server.token) as client:
            found = rows(f"one file of {LARGE_BYTES // MIB} MiB", LARGE_BYTES, measured(client, volume, large, scratch))
            found += rows(
                f"{SMALL_FILES} files of {SMALL_BYTES // 1024} KiB",
                SMALL_FILES * SMALL_BYTES,
                measured(client, volume, small, scratch),
            )
    print_table("Transfer: corral cp, every file verified, on one machine", found)


if __name__ == "__main__":
    main()
