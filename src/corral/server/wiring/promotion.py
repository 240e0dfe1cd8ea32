"""One of several servers over a PostgreSQL, from its start as a standby to its end, also as the leader.

A server starts as a standby and answers requests at once. When it has taken the lease, the parts of a leader are
started beside the running application, and then the context of the routes is replaced. A leader never becomes a
standby again: its process is replaced by a new one (`corral.server.wiring.run`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from fastapi import FastAPI
from starlette.types import Scope

from corral.control.live.worker import WorkerStopped
from corral.control.standby.lease import LeaseTimes
from corral.server.http.app import build_app
from corral.server.settings.settings import Settings
from corral.server.system.servers import Servers
from corral.server.system.waiting_reads import SILENT_SECONDS
from corral.server.wiring.assembly import Assembly, assembled
from corral.server.wiring.foundation import Handover
from corral.server.wiring.membership import Membership
from corral.server.wiring.standby import check_addresses, described, may_lead, start_standby
from corral.stores import open_store

log = logging.getLogger("corral.server.membership")


class OneOfSeveral:
    """A server of several. It is also the `Peer` of its application, which names the server to forward to."""

    def __init__(
        self,
        settings: Settings,
        parts: ExitStack,
        *,
        address: tuple[str, int],
        on_lead: Callable[[Assembly], None],
    ) -> None:
        """Start as a standby; closing `parts` stops everything. `on_lead` is called when this server leads. Raises
        StoreUnavailable and UnreachableAddress."""
        self._settings = settings
        self._on_lead = on_lead
        self._lock = threading.Lock()
        self._is_ended = False
        own = described(settings, *address)
        self._store = open_store(settings.database_url, session=own.session)
        parts.callback(self._store.close)
        reason = may_lead(settings, self._store)
        own = replace(own, may_lead=not reason, detail=reason)
        registry = self._store.registry()
        parts.callback(registry.close)
        check_addresses(own, registry.all())
        self._servers = Servers(
            own, last_event=self._last_event, registry=registry, step_down=lambda: self.membership.step_down()
        )
        self._standby = start_standby(settings, parts, store=self._store, registry=registry, servers=self._servers)
        self.membership = Membership(
            own,
            registry,
            times=LeaseTimes(lease_seconds=settings.high_availability.lease_seconds),
            monotonic=_steady,
            may_lead=lambda: not may_lead(settings, self._store),
            place=lambda: self._standby.follower.place,
            promote=self._promote,
        )
        self.app: FastAPI = build_app(self._standby.context, peer=self)
        self.membership.start()
        # Closed in the opposite order: the lease is released when everything that acts has stopped.
        parts.callback(self.membership.stop)
        self._leading = parts.enter_context(ExitStack())
        parts.callback(self._end)

    # ---------------------------------------------------------------- Peer

    @property
    def name(self) -> str:
        return self.membership.own.name

    @property
    def key(self) -> str:
        return self.membership.own.key

    @property
    def is_leading(self) -> bool:
        return self.app.state.context is not self._standby.context

    def leader_url(self) -> str | None:
        leader = self.membership.leader
        return None if leader is None or leader.name == self.name else leader.url

    def is_page(self, scope: Scope) -> bool:
        return self._standby.context.origins.job_at(scope) is not None

    def is_server(self, name: str, key: str) -> bool:
        return self.membership.is_server(name, key)

    @property
    def store_answers(self) -> bool:
        if self.is_leading:
            return self.membership.held.may_act
        return self._standby.follower.behind_seconds() < SILENT_SECONDS

    @property
    def is_ending(self) -> bool:
        return self.membership.must_restart.is_set()

    async def caught_up(self) -> None:
        await asyncio.wrap_future(self._standby.follower.caught_up())

    # ---------------------------------------------------------------- promotion

    def _promote(self, token: str) -> None:
        """Makes this server the leader, on its own thread, while the lease is renewed."""
        try:
            with self._lock:
                if self._is_ended:
                    return
                assembly = self._lead(token)
        except WorkerStopped:
            return
        except Exception:
            # Whatever it is: another server may be able to lead, and this one starts anew.
            log.exception("this server could not become the leader, and starts again")
            self.membership.must_restart.set()
            return
        self._on_lead(assembly)

    def _lead(self, token: str) -> Assembly:
        begun = time.monotonic()
        context = self._standby.context
        self._store.lead_with(token)
        handover = Handover(
            store=self._store,
            feed=context.feed,
            metrics=context.metrics,
            passwords=context.passwords,
            identities=context.identities,
            lease=self.membership.held,
        )
        assembly = self._leading.enter_context(assembled(self._settings, handover=handover, servers=self._servers))
        self.app.state.context = assembly.context
        self._standby.follower.hand_over(assembly.context.controller)
        took = time.monotonic() - begun
        log.warning("this server leads with term %d, after %.2f s", assembly.context.controller.term, took)
        return assembly

    def _end(self) -> None:
        """No promotion begins from now on."""
        with self._lock:
            self._is_ended = True

    def _last_event(self) -> int:
        with self._store.read() as tables:
            return tables.events.last_id()


def _steady() -> float:
    """The clock that also counts while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
