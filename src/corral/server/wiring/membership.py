"""One of several servers: watches the lease of the leader, takes it when it is free, and renews it.

On a thread of its own, with connections of its own. Becoming the leader takes longer than a renewal, so another thread
does that; see `promotion`.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from corral.control.live.worker import Worker
from corral.control.ports import LeaseRecord, ServerRecord, ServerRegistry, StoreUnavailable
from corral.control.standby.lease import HeldLease, LeaseTimes, LeaseWatch

log = logging.getLogger("corral.server.membership")

#: Between two reports of this server, and two looks at the others.
SEEN_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Leader:
    name: str
    url: str
    token: str


class Membership:
    def __init__(
        self,
        own: ServerRecord,
        registry: ServerRegistry,
        *,
        times: LeaseTimes,
        monotonic: Callable[[], float],
        may_lead: Callable[[], bool],
        place: Callable[[], int],
        promote: Callable[[str], None],
    ) -> None:
        """`may_lead` is asked before the lease is taken, `place` is the last event that was followed. `promote` is
        called with the token of the lease on a thread of its own."""
        self.own = own
        self.registry = registry
        self.held = HeldLease(times, monotonic)
        self._times = times
        self._monotonic = monotonic
        self._may_lead = may_lead
        self._place = place
        self._promote = promote
        self._watch = LeaseWatch(times)
        self._token = ""
        self._leader: Leader | None = None
        self._others: Mapping[str, ServerRecord] = {}
        self._seen_at = float("-inf")
        #: the process is to be replaced: another server leads, or should
        self.must_restart = threading.Event()
        self._worker = Worker("lease", self._round, every_seconds=times.look_seconds)

    def start(self) -> None:
        """Raises StoreUnavailable."""
        self.registry.announce(self.own)
        self._worker.start()

    def stop(self) -> None:
        """Gives the lease back. Called after everything that acts has stopped: another server may lead at once."""
        self._worker.stop()
        try:
            if self._token:
                self.registry.release(self._token)
            self.registry.leave(self.own.name, self.own.session)
        except StoreUnavailable as error:
            log.warning("the lease could not be released, and ends by itself: %s", error)

    def step_down(self) -> None:
        self.must_restart.set()

    @property
    def leader(self) -> Leader | None:
        """The server that leads, as far as this one knows."""
        return self._leader

    def is_server(self, name: str, key: str) -> bool:
        """Whether a forwarded request comes from another server of this store."""
        known = self._others.get(name)
        return known is not None and secrets.compare_digest(known.key.encode(), key.encode())

    # ---------------------------------------------------------------- the thread

    def _round(self) -> float | None:
        try:
            self._report()
        except StoreUnavailable as error:
            log.debug("this server cannot report itself: %s", error)
        if self._token:
            self._renew()
            return self._times.renew_seconds
        self._look()
        return None

    def _report(self) -> None:
        """Once a second, and at once for an unknown leader."""
        now = self._monotonic()
        if now >= self._seen_at + SEEN_SECONDS:
            self._seen_at = now
            if not self.registry.seen(self.own.name, self._place()):
                # An operator has removed the row, or the store was restored.
                log.warning("the store did not list this server any more: it is announced again")
                self.registry.announce(replace(self.own, place=self._place()))
            self._others = {server.name: server for server in self.registry.all()}

    def _renew(self) -> None:
        begun = self._monotonic()
        try:
            is_held = self.registry.renew(self._token)
        except StoreUnavailable as error:
            self.held.failed()
            log.warning("the lease could not be renewed: %s", error)
            return
        if is_held:
            self.held.renewed(begun)
        else:
            self.held.failed()
            log.critical("another server leads: this one starts again as a standby")
            self.must_restart.set()

    def _look(self) -> None:
        at = self._monotonic()
        try:
            lease = self.registry.lease()
            is_free = self._watch.saw(lease, at)
            self._leader = self._leader_of(lease)
            if is_free and self._may_lead():
                self._take(lease)
        except StoreUnavailable as error:
            self._watch.failed()
            log.debug("the lease cannot be read: %s", error)

    def _leader_of(self, lease: LeaseRecord) -> Leader | None:
        if not lease.token:
            return None
        if lease.server not in self._others:
            self._others = {server.name: server for server in self.registry.all()}
        record = self._others.get(lease.server)
        return None if record is None else Leader(name=record.name, url=record.url, token=lease.token)

    def _take(self, lease: LeaseRecord) -> None:
        token, begun = secrets.token_hex(16), self._monotonic()
        if not self.registry.acquire(lease, self.own, token):
            return
        self.held.renewed(begun)
        self._token = token
        # Requests that wait for the former leader, which may be frozen, are given up.
        self._leader = Leader(name=self.own.name, url=self.own.url, token=token)
        log.warning("this server leads from now on%s", f"; {lease.server} led before" if lease.server else "")
        threading.Thread(target=self._promote, args=(token,), name="promotion", daemon=True).start()
