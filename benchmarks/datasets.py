"""Versions of files against `cp -r`: 10,000 small files and one large one, committed, checked out, changed by 1 %.

`cp -r` of the same tree runs before and after each of them, because what else happens on a machine changes from
minute to minute; the ratio is to the mean of both. `python -m benchmarks.datasets --mib 64` is a small one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.tables import Row, median, print_table, spread
from corral.datasets import DirectoryBlobs, DirectoryVersions, Repository

SMALL_FILES = 10_000
ROUNDS = 3
#: Something changes in one place of so many MiB of the large file.
MIB_PER_PLACE = 128
_CHUNK = 16 << 20


def make_tree(root: Path, mib: int) -> int:
    random = np.random.default_rng(7)
    total = 0
    for number in range(SMALL_FILES):
        folder = root / f"part-{number // 100:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        data = random.bytes(int(random.integers(4 << 10, 28 << 10)))
        (folder / f"sample-{number:05d}.bin").write_bytes(data)
        total += len(data)
    with open(root / "large.bin", "wb") as stream:
        for at in range(0, mib << 20, _CHUNK):
            total += stream.write(random.bytes(min(_CHUNK, (mib << 20) - at)))
    os.sync()
    return total


def change_one_percent(root: Path, mib: int) -> int:
    """Every hundredth small file, and a hundredth of the large one: overwritten, and in two places put in."""
    random = np.random.default_rng(8)
    changed = 0
    for path in sorted(root.glob("part-*/*"))[::100]:
        changed += path.write_bytes(random.bytes(path.stat().st_size))
    places = max(1, mib // MIB_PER_PLACE)
    large, part = root / "large.bin", (mib << 20) // 100 // places
    with open(large, "r+b") as stream:
        for place in range(places):
            stream.seek(place * ((mib << 20) // places))
            changed += stream.write(random.bytes(part))
    data = large.read_bytes()
    third = len(data) // 3
    with open(large, "wb") as stream:
        stream.writelines((data[:third], b"one", data[third : 2 * third], b"seventeen bytes !", data[2 * third :]))
    os.sync()
    return changed


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Bench:
    def __init__(self, scratch: Path, mib: int) -> None:
        self.scratch = scratch
        self.tree = scratch / "tree"
        self.size = make_tree(self.tree, mib)

    def repository(self) -> Repository:
        return Repository(DirectoryBlobs(self.scratch / "blobs"), DirectoryVersions(self.scratch / "versions"))

    def copy(self) -> float:
        """How long `cp -r` takes right now."""
        target = self.scratch / "cp"
        took = timed(lambda: subprocess.run(["cp", "-r", self.tree, target], check=True))
        shutil.rmtree(target)
        os.sync()
        return took

    def commit(self) -> float:
        self.remove("blobs", "versions")
        took = timed(lambda: self.repository().commit("bench", self.tree, message="first", author="bench"))
        os.sync()
        return took

    def checkout(self) -> float:
        self.remove("checkout")
        took = timed(lambda: self.repository().checkout("bench", "latest", self.scratch / "checkout"))
        os.sync()
        return took

    def remove(self, *names: str) -> None:
        for name in names:
            shutil.rmtree(self.scratch / name, ignore_errors=True)
        os.sync()


def main(mib: int = 2048) -> None:
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        bench = Bench(Path(scratch), mib)
        times: dict[str, list[float]] = {"cp -r": [], "commit": [], "checkout": []}
        ratios: dict[str, list[float]] = {"commit": [], "checkout": []}
        before = bench.copy()
        for _ in range(ROUNDS):
            for what, work in (("commit", bench.commit), ("checkout", bench.checkout)):
                took = work()
                after = bench.copy()
                times[what].append(took)
                times["cp -r"].append(after)
                ratios[what].append((before + after) / 2 / took)
                before = after
        first = stored(bench.scratch)
        changed = change_one_percent(bench.tree, mib)
        second = timed(lambda: bench.repository().commit("bench", bench.tree, message="second", author="bench"))
        grown = stored(bench.scratch) - first
    megabytes = bench.size / 1e6
    rows = [Row(what=f"cp -r, {megabytes:.0f} MB in {SMALL_FILES + 1} files", **rate(times["cp -r"], megabytes))]
    for what, target in (("commit", 0.3), ("checkout", 0.5)):
        ratio = f"{median(ratios[what]):.2f} × cp -r ({spread(ratios[what], '×', 2)})"
        rows.append(Row(what=what, target=f"≥ {target} × cp -r", ratio=ratio, **rate(times[what], megabytes)))
    rows += [
        Row(what=f"commit again, {changed / bench.size:.2%} changed", value=f"{megabytes / second:.0f} MB/s"),
        Row(what="stored for the second version", value=f"{grown / first:.2%} of the first", target="≤ 1.5 %"),
    ]
    print_table("Datasets", rows)


def rate(seconds: list[float], megabytes: float) -> dict[str, str]:
    rates = [megabytes / took for took in seconds]
    return {"value": f"{median(rates):.0f} MB/s", "spread": spread(rates, "MB/s", 0)}


def stored(scratch: Path) -> int:
    return sum(path.stat().st_size for path in (scratch / "blobs").rglob("*") if path.is_file())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=2048, help="size of the large file")
    main(parser.parse_args().mib)
