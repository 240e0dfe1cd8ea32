"""When a lease is free, and how long its holder may act. No clock of another machine is compared.

A standby measures by its own steady clock for how long it has seen the lease unchanged. The leader counts from the
begin of its last successful renewal, which is earlier than any standby can have seen it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from corral.control.ports import EngineUnavailable, LaunchOrder, LeaseRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseTimes:
    lease_seconds: float = 4.0

    @property
    def renew_seconds(self) -> float:
        return self.lease_seconds / 10

    @property
    def look_seconds(self) -> float:
        return self.lease_seconds / 32

    @property
    def gone_seconds(self) -> float:
        """The seconds until a lease is free after its session has left the database."""
        return self.lease_seconds / 5

    @property
    def act_seconds(self) -> float:
        """How long a leader acts after the begin of its last renewal."""
        return self.lease_seconds * 0.6


class LeaseWatch:
    """A standby's view of the lease."""

    def __init__(self, times: LeaseTimes) -> None:
        self._times = times
        self._seen: tuple[str, int] | None = None
        self._since = 0.0

    def saw(self, lease: LeaseRecord, at: float) -> bool:
        """Whether the lease is free. `at` is the steady time at which it was asked for."""
        if not lease.token:
            self._seen = None
            return True
        if self._seen != (lease.token, lease.renewals):
            self._seen, self._since = (lease.token, lease.renewals), at
            return False
        unchanged = at - self._since
        return unchanged >= self._times.lease_seconds or (
            not lease.has_session and unchanged >= self._times.gone_seconds
        )

    def failed(self) -> None:
        """The store could not be read: the leader cannot have renewed either, so the measurement begins again."""
        self._seen = None


class HeldLease:
    """The leader's own view. As the last launch step it keeps a leader from launching that could not renew."""

    def __init__(self, times: LeaseTimes, monotonic: Callable[[], float]) -> None:
        self._times = times
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._acts_until = float("-inf")

    def renewed(self, begun_at: float) -> None:
        with self._lock:
            self._acts_until = max(self._acts_until, begun_at + self._times.act_seconds)

    def failed(self) -> None:
        """The renewal failed: the session may be gone, and the lease free soon."""
        with self._lock:
            self._acts_until = float("-inf")

    @property
    def may_act(self) -> bool:
        with self._lock:
            return self._monotonic() < self._acts_until

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        if not self.may_act:
            raise EngineUnavailable("this server cannot renew its lease, so another one may lead soon")
        return order
