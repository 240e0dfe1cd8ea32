"""How commits and the garbage collection avoid conflicts, over any storage and without its clock.

A commit writes a lease before it reads what is stored, and removes it after its version is recorded. A collection
publishes the list of packs that it will remove before it reads leases and versions. Whichever comes first, one of them
sees the other:

- the commit saw the condemned packs: it does not rely on them and stores those pieces again;
- the commit did not: then its lease, which lists the runs that it saw, prevents that run from removing anything.

Only a process that died is detected by time: its lease is no longer renewed.
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
#: A lease that was not renewed for this long has expired; the clocks of machines may differ by half of it.
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
        # The work under the lease is done or has failed already: a lease that stays expires by itself.
        with suppress(DatasetError, OSError):
            self._blobs.remove(self._name)

    def saw(self, runs: list[str]) -> None:
        """Allows these runs of the collection to continue: this commit needs nothing that they remove."""
        with self._lock:
            self._seen = list(runs)
        self._write()

    def check(self) -> None:
        """Raises `LeaseLost` if the lease may have looked expired to other processes at any moment."""
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
                continue  # `check` raises if this continues


def live_leases(blobs: BlobStore, now: float, *, seconds: float = LEASE_SECONDS) -> list[frozenset[str]]:
    """The runs of the collection that each running commit has seen. Expired leases are removed."""
    live = []
    for item in blobs.objects(LEASES):
        try:
            body = json.loads(blobs.get(item.name))
        except ObjectMissing:
            continue  # that commit is over
        if now - float(body["renewed_at"]) > seconds:
            blobs.remove(item.name)
        else:
            live.append(frozenset(body["seen"]))
    return live
