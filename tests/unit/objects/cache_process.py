"""A process that fetches blocks slowly, for tests that kill it or run several: counts each fetch in a file."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from corral.objects.cache import BlockCache, Identity

BLOCK = 1000


def main(root: str, seconds: float, numbers: list[int]) -> None:
    cache = BlockCache(os.path.join(root, "cache"), 1 << 30, block_bytes=BLOCK)
    identity = Identity(bucket="b", key="k", version="1", size=10 * BLOCK)

    def fetch(start: int, end: int) -> bytes:
        with Path(root, "fetched").open("a") as count:
            count.write(f"{start}\n")
        time.sleep(seconds)
        return bytes([start // BLOCK]) * (end - start)

    for number in numbers:
        with cache.opened(identity, number, fetch) as block:
            assert os.pread(block, BLOCK, 0) == bytes([number]) * BLOCK
    Path(root, f"done-{os.getpid()}").touch()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), [int(word) for word in sys.argv[3:]])
