"""Whether the server can write to its store and to its home, for `/readyz`; of a standby, whether it follows the store.

Tested at most once a second, on a thread of its own: the request does not wait for a disk or a database that hangs.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from corral.control.ports import Store

_FRESH_SECONDS = 1.0
_FILE = ".ready"


class Proof(Protocol):
    """Whether the server can do its part."""

    async def problem(self, timeout_seconds: float) -> str:
        """Why it cannot; "" if it can."""


class FollowProof:
    """The write check of a standby: it writes nothing, and follows the store."""

    def __init__(self, behind_seconds: Callable[[], float]) -> None:
        self._behind_seconds = behind_seconds

    async def problem(self, timeout_seconds: float) -> str:
        behind = self._behind_seconds()
        return "" if behind <= timeout_seconds else f"the store was not followed for {behind:.0f} s"


class WriteProof:
    def __init__(self, store: Store, home: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._path = home / _FILE
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last: Future[str] | None = None
        self._fresh_until = 0.0

    async def problem(self, timeout_seconds: float) -> str:
        """Why the server cannot write; "" if it can."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.wrap_future(self._attempt())
        except TimeoutError:
            return "the store or the disk does not answer"

    def _attempt(self) -> Future[str]:
        """The last test while it is fresh or still running: a test that hangs is not started a second time."""
        with self._lock:
            last = self._last
            if last is not None and (not last.done() or self._monotonic() < self._fresh_until):
                return _shielded(last)
            answer: Future[str] = Future()
            self._last = answer
            self._fresh_until = self._monotonic() + _FRESH_SECONDS
        threading.Thread(target=self._prove, args=(answer,), name="write-proof", daemon=True).start()
        return _shielded(answer)

    def _prove(self, answer: Future[str]) -> None:
        try:
            with self._store.write() as tables:
                tables.meta.put("ready", "")
        except Exception:  # noqa: BLE001 - the answer is the same for every error of the store
            answer.set_result("the store cannot be written")
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, b"ready\n", 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            answer.set_result(f"the home directory cannot be written: {error.strerror}")
            return
        answer.set_result("")


def _shielded(answer: Future[str]) -> Future[str]:
    """A future for one caller: cancelling it does not cancel the test for others."""
    own: Future[str] = Future()

    def pass_on(done: Future[str]) -> None:
        if own.set_running_or_notify_cancel():
            own.set_result(done.result())

    answer.add_done_callback(pass_on)
    return own
