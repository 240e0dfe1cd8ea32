"""HTTP connections with limits: a client that sends nothing, sends too slowly or does not read is disconnected.

A thin layer over uvicorn's protocol, which only limits the time between two requests. Each connection has one timer at
a time for the next expected step:

- the header of a request must arrive within `header_seconds` of its first byte, or of the connection; at most 64 KiB;
- the body must arrive with at least `MIN_BODY_BYTES_PER_SECOND` on average over every `body_seconds`, unless the server
  itself does not read; `middleware` refuses bodies that are too large;
- the client must read the answer: if nothing could be sent for `WRITE_SECONDS`, the connection is closed. The client of
  an event stream reconnects with the id of the last event.

The time to answer a request is not limited here. The number of simultaneous connections of an address is limited, too,
except for trusted reverse proxies.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from corral.server.auth.throttle import network_of

log = logging.getLogger("corral.server.http.connections")

MAX_HEAD_BYTES = 64 * 1024
MIN_BODY_BYTES_PER_SECOND = 256
WRITE_SECONDS = 60.0
#: Overhead of a chunked body: sizes of chunks, trailers.
_MAX_FRAMING_FACTOR = 16
#: Between two lines in the log about an address with too many connections.
_LOG_SECONDS = 60.0


@dataclass(kw_only=True)
class ConnectionLimits:
    header_seconds: float
    body_seconds: float
    per_address: int
    #: addresses or networks of proxies; "*" means all
    trusted: Sequence[str] = ()
    write_seconds: float = WRITE_SECONDS
    #: connections now, by address
    counts: Counter[str] = field(default_factory=Counter)
    _logged_at: float = float("-inf")

    def take(self, address: str, now: float) -> bool:
        """Count a connection of an address; False if it has too many already."""
        if self.is_trusted(address):
            return True
        place = network_of(address)
        if self.counts[place] >= self.per_address:
            if now - self._logged_at >= _LOG_SECONDS:
                self._logged_at = now
                log.warning("%s has %d connections: no more are taken from there", place, self.counts[place])
            return False
        self.counts[place] += 1
        return True

    def give_back(self, address: str) -> None:
        if self.is_trusted(address):
            return
        place = network_of(address)
        self.counts[place] -= 1
        if self.counts[place] <= 0:
            del self.counts[place]

    def is_trusted(self, address: str) -> bool:
        return any(proxy == "*" or proxy == address or _is_in(address, proxy) for proxy in self.trusted)


class LimitedProtocol(HttpToolsProtocol):
    """Created by `limited_protocol`, which sets the limits."""

    limits: ConnectionLimits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._counted: str | None = None
        self._is_upgraded = False
        self._in_body = False
        self._head_bytes = 0
        #: bytes of the present request after the header, bytes of its body, and both at the last check
        self._sent_bytes = 0
        self._body_bytes = 0
        self._seen_bytes = 0

    # ---------------------------------------------------------------- connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client is not None else None
        if address is not None:
            if not self.limits.take(address, self.loop.time()):
                self._refuse(503, b"Service Unavailable", b"Too many connections from your address.")
                return
            self._counted = address
        self._set_timer(self.limits.header_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        # From here on another protocol uses the connection, with pings of its own.
        self._is_upgraded = True
        self._release()
        super().handle_websocket_upgrade()

    def _release(self) -> None:
        self._clear_timer()
        self._clear_write_timer()
        if self._counted is not None:
            self.limits.give_back(self._counted)
            self._counted = None

    # ---------------------------------------------------------------- requests

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        was_in_body = self._in_body
        super().data_received(data)
        if self._is_upgraded or self.transport.is_closing():
            return
        if self._in_body:
            self._sent_bytes += len(data) if was_in_body else 0
            if self._sent_bytes > self._body_bytes * _MAX_FRAMING_FACTOR + MAX_HEAD_BYTES:
                self._refuse(400, b"Bad Request", b"The body is mostly not a body.")
            elif self._timer is None:
                self._watch_body()
        elif self.cycle is None or self.cycle.response_complete:
            # The head of the next request has begun, and is not complete.
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431, b"Request Header Fields Too Large", b"The head of the request is too large.")
            elif self._timer is None:
                self._set_timer(self.limits.header_seconds, self._head_is_late)

    def on_headers_complete(self) -> None:
        self._clear_timer()
        self._head_bytes = self._sent_bytes = self._body_bytes = 0
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._clear_timer()
        self._in_body = False
        super().on_message_complete()

    def _head_is_late(self) -> None:
        self._timer = None
        if self._head_bytes:
            self._refuse(408, b"Request Timeout", b"The head of the request took too long.")
        else:
            self.transport.close()

    def _watch_body(self) -> None:
        self._seen_bytes = self._sent_bytes
        self._set_timer(self.limits.body_seconds, self._look_at_body)

    def _look_at_body(self) -> None:
        self._timer = None
        came = self._sent_bytes - self._seen_bytes
        # A server that does not read, or has not asked for the body yet, is busy: the client is not too slow.
        is_waiting = self.flow.read_paused or (self.cycle is not None and self.cycle.waiting_for_100_continue)
        if came < MIN_BODY_BYTES_PER_SECOND * self.limits.body_seconds and not is_waiting:
            # No answer is sent: the client would take it as the answer to a request that it has not sent yet.
            self.transport.abort()
        else:
            self._watch_body()

    # ---------------------------------------------------------------- answers

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._clear_write_timer()
        super().resume_writing()

    # ---------------------------------------------------------------- shared

    def _refuse(self, status: int, phrase: bytes, text: bytes) -> None:
        self._clear_timer()
        head = b"HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
        retry = b"retry-after: 5\r\n" if status == 503 else b""
        self.transport.write(head % (status, phrase, len(text)) + retry + b"connection: close\r\n\r\n" + text)
        self.transport.close()

    def _set_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._clear_timer()
        self._timer = self.loop.call_later(seconds, then)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _clear_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def limited_protocol(limits: ConnectionLimits) -> type[LimitedProtocol]:
    """The class for uvicorn's `http` setting: all connections of one server share the limits."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})


def _is_in(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
