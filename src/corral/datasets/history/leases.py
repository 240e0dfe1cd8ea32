"""How commits and the garbage collection stay out of each other's way, over any storage and without its clock.

A commit puts down a lease before it looks at what is there, and takes it away after its version is recorded. A
collection condemns packs in the open before it looks at leases and versions. Whichever comes first, one of them sees
the other:
- the commit saw the condemned packs: it does not rely on them and stores those pieces again;
- it did not: then its lease, which says which runs it saw, keeps that run from removing anything.
Only a process that died is told by time: its lease is not renewed any more.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from corral.datasets.content.blobs import BlobStore
from corral.datasets.errors import DatasetError, LeaseLost, ObjectMissing
from corral.datasets.history.records import canonical

LEASES = "leases/"
#: A lease that was not renewed for so long belongs to nobody; clocks of machines may differ by half of it.
LEASE_SECONDS = 3600.0


class Lease:
    """Held while a commit runs: `with Lease(...) as lease: ...`. Renewed by a thread of its own."""

    def __init__(self, blobs: BlobStore, clock: Callable[[], float], *, seconds: float = LEASE_SECONDS) -> None:
        self._blobs = blobs
        self._clock = clock
        self._seconds = seconds
        self._name = f"{LEASES}{os.urandom(16).hex()}"
        self._seen: list[str] = []
        self._renewed_at = 0.0
        self._lost = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="dataset-lease", daemon=True)

    def __enter__(self) -> Lease:
        self._renewed_at = self._clock()
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        # What the lease was for is done or has failed already: one that stays ends by itself.
        with suppress(DatasetError, OSError):
            self._blobs.remove(self._name)

    def saw(self, runs: list[str]) -> None:
        """These runs of the collection may go on: this commit relies on nothing that they condemned."""
        with self._lock:
            self._seen = list(runs)
        self._write()

    def check(self) -> None:
        """Raises `LeaseLost` if the lease may have looked dead to others at any moment."""
        if self._lost or self._clock() - self._renewed_at > self._seconds / 2:
            raise LeaseLost(
                f"{self._blobs.where} was out of reach for more than {self._seconds / 2:.0f} s: run it again, "
                "what is there is used again"
            )

    def _write(self) -> None:
        with self._lock:
            now = self._clock()
            if now - self._renewed_at > self._seconds / 2:
                self._lost = True
            self._blobs.put(self._name, [canonical({"renewed_at": now, "seen": self._seen})])
            self._renewed_at = now

    def _keep(self) -> None:
        while not self._over.wait(self._seconds / 12):
            try:
                self._write()
            except (DatasetError, OSError):
                continue  # `check` tells, if it stays like this


def live_leases(blobs: BlobStore, now: float, *, seconds: float = LEASE_SECONDS) -> list[frozenset[str]]:
    """For each commit that runs: the runs of the collection that it saw. Leases of the dead are taken away."""
    live = []
    for item in blobs.objects(LEASES):
        try:
            words = json.loads(blobs.get(item.name))
        except ObjectMissing:
            continue  # that commit is over
        if now - float(words["renewed_at"]) > seconds:
            blobs.remove(item.name)
        else:
            live.append(frozenset(words["seen"]))
    return live
