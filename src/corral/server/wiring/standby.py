"""A server that stands by: everything that answers reads, and nothing that acts."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from corral.control.live.changes.audit_events import AuditEvents
from corral.control.live.unit_of_work import Caller
from corral.control.live.worker import Worker, log_failure
from corral.control.ports import ServerRecord, ServerRegistry, StoreUnavailable
from corral.control.records import EventRecord
from corral.control.standby.follower import LOOK_SECONDS, Follower
from corral.server.auth.identity import Identities
from corral.server.auth.passwords import Passwords
from corral.server.events.audit_notes import AuditNotes, Write
from corral.server.events.visibility import JOB_NOUNS
from corral.server.http.app import VERSION
from corral.server.http.context import ServerContext
from corral.server.monitoring.server_metrics import ServerMetrics
from corral.server.settings.disk_limits import disk_limits
from corral.server.settings.settings import Settings
from corral.server.system.disk_guard import DiskGuard
from corral.server.system.servers import ALIVE_SECONDS, Servers
from corral.server.system.write_proof import FollowProof
from corral.server.wiring import home_ownership
from corral.server.wiring.assembly import context_of
from corral.server.wiring.clusters import unopened
from corral.server.wiring.foundation import SystemClock, built, event_feed, prepared_home
from corral.server.wiring.monitoring_assembly import unmonitored
from corral.server.wiring.worker_assembly import at_rest
from corral.server.workbenches.workbench_origins import is_loopback
from corral.stores.database.store import SqlStore
from corral.stores.jobs.job_directories import DirectoryWorkspace

log = logging.getLogger("corral.server.standby")

#: How long a wait for the next commit may take.
_NOTICE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Standby:
    context: ServerContext
    follower: Follower


def described(settings: Settings, host: str, port: int) -> ServerRecord:
    """This server, as the others see it."""
    section = settings.high_availability
    name = section.name_at(port)
    return ServerRecord(
        name=name,
        url=section.url_at(host, port, has_tls=settings.server.has_tls),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=VERSION,
        session=f"corral {name} {secrets.token_hex(4)}"[:63],
        key=secrets.token_hex(16),
        may_lead=True,
    )


class UnreachableAddress(Exception):
    """A server announces an address that means another machine there."""


def check_addresses(own: ServerRecord, others: Sequence[ServerRecord]) -> None:
    """Servers on several machines reach each other: a loopback address leads each of them to itself. Raises
    UnreachableAddress."""
    far = [server for server in others if server.host != own.host and server.unseen_seconds < ALIVE_SECONDS]
    for server, seen_by in [(own, far), *((other, [own]) for other in far)]:
        if seen_by and is_loopback(urlsplit(server.url).hostname or ""):
            raise UnreachableAddress(
                f"server {server.name} on {server.host} announces {server.url}, at which server {seen_by[0].name} on "
                f"{seen_by[0].host} cannot reach it: set high_availability.url on {server.host} to an address that the "
                "other machines reach, or server.host to one, such as 0.0.0.0"
            )


def may_lead(settings: Settings, store: SqlStore) -> str:
    """Why this server may not lead; "" if it may. Jobs and their files belong to the home that has the store."""
    holder = store.holder()
    if holder is None or holder.is_same(home_ownership.claim_of(settings.home, 0.0)):
        return ""
    return f"its home is not the one that has the store, {holder.path} on {holder.host}"


def start_standby(
    settings: Settings, parts: ExitStack, *, store: SqlStore, registry: ServerRegistry, servers: Servers
) -> Standby:
    """Load the state and follow the leader; closing `parts` stops it. Raises StoreUnavailable."""
    isolated = prepared_home(settings)
    feed, metrics, clock = event_feed(store), ServerMetrics(VERSION), SystemClock()
    roots = home_ownership.engine_roots(settings, store.holder())
    identities = Identities(store, touch=lambda credential, at: None, now=clock.now)

    def announce(events: Sequence[EventRecord]) -> None:
        feed.publish(events)
        if any(event.action.partition(".")[0] not in JOB_NOUNS for event in events):
            feed.call_soon(identities.forget_all)

    follower = Follower(
        store=store,
        clock=clock,
        policies=settings.control_policies,
        workspace=DirectoryWorkspace(settings.home / "jobs"),
        announce=announce,
    )
    guard = DiskGuard(home=settings.home, limits=disk_limits(settings), keep_room=lambda: None)
    base = built(
        settings,
        isolated,
        store=store,
        here=unopened(settings, roots, store),
        controller=follower,
        feed=feed,
        metrics=metrics,
        guard=guard,
    )
    monitoring = unmonitored(settings, controller=follower, store=store, box=base.box, clock=clock, servers=servers)
    context = context_of(
        base,
        at_rest(base, monitoring),
        passwords=Passwords(),
        servers=servers,
        proof=FollowProof(follower.behind_seconds),
    )
    parts.callback(context.passwords.close)
    parts.callback(context.readers.close)
    parts.callback(context.steps.close)
    parts.callback(context.outside.close)
    parts.callback(context.reads.close)
    notes = ThreadPoolExecutor(1, thread_name_prefix="audit")
    parts.callback(notes.shutdown)
    context = replace(context, identities=identities, audit=AuditNotes(_noted_in(store, notes)))
    follower.follow()
    parts.callback(follower.stop)
    _wake(follower, registry, parts)
    return Standby(context=context, follower=follower)


def _noted_in(store: SqlStore, notes: ThreadPoolExecutor) -> Write:
    """Lines of the audit log about reads: the only rows that a standby adds."""

    def write(caller: Caller, action: str, subject: str, owner: str, detail: Mapping[str, Any]) -> None:
        notes.submit(add, caller, action, subject, owner, detail).add_done_callback(
            log_failure(log, "an entry of the audit log could not be written")
        )

    def add(caller: Caller, action: str, subject: str, owner: str, detail: Mapping[str, Any]) -> None:
        with store.write() as tx:
            lines = AuditEvents(tx, SystemClock().now())
            lines.add(caller, action, subject, owner=owner, detail=detail)
            lines.flush()

    return write


def _wake(follower: Follower, registry: ServerRegistry, parts: ExitStack) -> None:
    def wait() -> float:
        try:
            registry.wait_for_commit(_NOTICE_SECONDS)
        except StoreUnavailable:
            return LOOK_SECONDS
        follower.committed()
        return 0.0

    worker = Worker("commit-notices", wait, every_seconds=LOOK_SECONDS)
    worker.start()
    parts.callback(worker.ask_to_stop)
