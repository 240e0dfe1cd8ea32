"""The queue of requests to the controller. While the controller cannot process requests, they are refused at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from corral.control.live.state import State
from corral.control.live.turn import Request
from corral.control.ports import Clock

#: Requests that share one transaction at most; more would make the first ones wait.
TURN_SIZE = 500
#: How long reports of engines wait for other requests to share a commit with. No caller waits for their answer, and
#: each durable commit waits for the disk.
GATHER_SECONDS = 0.012
#: Reports wait only while so many were taken within so long: those of single jobs are processed at once, those of
#: hundreds of jobs a second share commits.
FLURRY_REPORTS = 6
FLURRY_SECONDS = 0.02

Why = Callable[[], Exception]


@dataclass(slots=True, eq=False)
class Read:
    run: Callable[[State], Any]
    answer: Future[Any] = field(default_factory=Future)

    def attend(self, state: State) -> None:
        try:
            result = self.run(state)
        except Exception as error:  # noqa: BLE001 - the caller gets it
            self.fail(error)
        else:
            with suppress(InvalidStateError):
                self.answer.set_result(result)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.answer.set_exception(error)


class Inbox:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._arrived = threading.Condition()
        self._requests: deque[Request] = deque()
        self._reads: deque[Read] = deque()
        #: why nothing is accepted
        self._refusal: Why | None = None
        self._refuses_reads = False
        self._is_closed = False
        #: the controller waits for a caller, or for a time: reports need not wake it
        self._gathers = False
        #: when the latest reports were taken, as many as make a flurry
        self._reported_at: deque[float] = deque(maxlen=FLURRY_REPORTS)

    # ---------------------------------------------------------------- those who ask

    def put(self, request: Request) -> None:
        with self._arrived:
            refusal = self._refusal
            if refusal is None:
                self._requests.append(request)
                if not (self._gathers and request.is_patient):
                    self._arrived.notify()
        if refusal is not None:
            # Outside of the lock: a caller may make its next request at once.
            request.fail(refusal())

    def put_read(self, read: Read) -> None:
        with self._arrived:
            refusal = self._refusal if self._refuses_reads else None
            if refusal is None:
                self._reads.append(read)
                self._arrived.notify()
        if refusal is not None:
            read.fail(refusal())

    # ---------------------------------------------------------------- the controller

    def accept(self) -> None:
        """Accepts requests and reads again, unless the inbox is closed."""
        with self._arrived:
            if not self._is_closed:
                self._refusal, self._refuses_reads = None, False

    def refuse(self, why: Why, *, reads: bool) -> None:
        """Refuses waiting and later requests, and with `reads` also reads."""
        with self._arrived:
            if self._is_closed:
                return
            self._refusal, self._refuses_reads = why, reads
            waiting: list[Request | Read] = [*self._requests, *(self._reads if reads else ())]
            self._requests.clear()
            if reads:
                self._reads.clear()
            self._arrived.notify_all()
        for each in waiting:
            each.fail(why())

    def close(self, why: Why) -> None:
        """Closes the inbox: everything is refused from now on."""
        self.refuse(why, reads=True)
        with self._arrived:
            self._is_closed = True
            self._arrived.notify_all()

    def take(self, rest_seconds: Callable[[], float]) -> tuple[list[Request], list[Read]]:
        """Waits up to `rest_seconds()` and returns the requests and reads that have arrived."""
        with self._arrived:
            if not (self._requests or self._reads or self._is_closed) and (rest := rest_seconds()) > 0:
                self._arrived.wait(timeout=rest)
            if self._requests and self._is_flurry() and all(request.is_patient for request in self._requests):
                self._gathers = True
                self._arrived.wait_for(self._caller_waits, timeout=GATHER_SECONDS)
                self._gathers = False
            requests = [self._requests.popleft() for _ in range(min(TURN_SIZE, len(self._requests)))]
            now = self._clock.monotonic()
            self._reported_at.extend(now for request in requests if request.is_patient)
            return requests, self._take_reads()

    def take_reads(self, seconds: float) -> list[Read]:
        """Waits up to `seconds` and returns the reads that have arrived."""
        with self._arrived:
            if not (self._reads or self._is_closed):
                self._arrived.wait(timeout=seconds)
            return self._take_reads()

    def take_all(self) -> Sequence[Request]:
        with self._arrived:
            requests = list(self._requests)
            self._requests.clear()
            return requests

    def _take_reads(self) -> list[Read]:
        reads = list(self._reads)
        self._reads.clear()
        return reads

    def _is_flurry(self) -> bool:
        recent = self._reported_at
        return len(recent) == FLURRY_REPORTS and self._clock.monotonic() - recent[0] < FLURRY_SECONDS

    def _caller_waits(self) -> bool:
        return bool(self._reads) or self._is_closed or any(not item.is_patient for item in self._requests)
