"""The server process: one per home directory, on one port, until a signal stops it. Jobs continue without it."""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TextIO, TypeVar

import uvicorn
from fastapi import FastAPI

from corral.control.live.worker import workers_alive
from corral.control.ports import HistoryUnavailable, StoreHeld, StoreUnavailable
from corral.control.standby.follower import Follower
from corral.server.demo import Demo
from corral.server.http.app import VERSION, present_context
from corral.server.http.connections import ConnectionLimits, limited_protocol
from corral.server.http.context import ServerContext
from corral.server.settings.settings import Settings
from corral.server.settings.shown_settings import without_password
from corral.server.wiring.assembly import assembled
from corral.server.wiring.home_lock import HomeLock, HomeLocked
from corral.server.wiring.home_ownership import RunningElsewhere, held_text
from corral.server.wiring.promotion import OneOfSeveral
from corral.server.wiring.server_log import add_log_file, configure_logging, flush_output
from corral.server.wiring.standby import UnreachableAddress
from corral.server.wiring.tls import CHECK_SECONDS, CertificateFiles, check_authorities, check_certificate
from corral.server.wiring.unavailable import Interim
from corral.server.workbenches.proxy import MAX_MESSAGE_BYTES
from corral.server.workbenches.workbench_ports import serve_at
from corral.stores import StoreError, StoreRefused
from corral.telemetry.history import HistoryTooNew

log = logging.getLogger("corral.server")

Opened = TypeVar("Opened")

EXIT_LOCKED = 3
EXIT_PORT = 4
EXIT_STORE = 5
EXIT_HELD = 6
EXIT_FAILED = 1

#: After a signal the process ends within this time, even if a thread hangs.
STOP_SECONDS = 5.0
#: Part of that time for requests that are being answered.
DRAIN_SECONDS = 2
#: Between two attempts to open a store that is unavailable at the start.
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0
#: connections that wait to be accepted
BACKLOG = 2048
DEMO_NODES = "6x4xA10,5x4xA100-80G"


class CannotStart(Exception):
    """The server cannot start."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StopAsked(BaseException):
    """SIGTERM or Ctrl-C before the server listens. Jobs continue; there is nothing to save."""


def serve(settings: Settings, *, demo: bool = False, take_over: bool = False) -> None:
    """Run until SIGTERM or Ctrl-C. Ends the process with a message and an exit code if it cannot start."""
    configure_logging(log_format=settings.server.log_format, level=settings.server.log_level)
    if demo:
        settings = for_demo(settings)
    several = settings.high_availability.enabled
    try:
        if several:
            if run_one_of_several(settings, out=sys.stdout):
                replace_process()
            return
        failed = run(settings, out=sys.stdout, demo=demo, take_over=take_over)
    except CannotStart as problem:
        _say(sys.stderr, f"corral: {problem}\n")
        raise SystemExit(problem.exit_code) from None
    except StopAsked:
        return
    finally:
        flush_output()
    if failed:
        raise SystemExit(EXIT_FAILED)


def _log_file(settings: Settings, path: Path) -> Callable[[], None]:
    server = settings.server
    try:
        return add_log_file(path, max_bytes=server.log_file_size, count=server.log_file_count)
    except OSError as error:
        message = f"cannot write the log file {path} (server.log_file): {error.strerror}"
        raise CannotStart(message, EXIT_FAILED) from None


def for_demo(settings: Settings) -> Settings:
    """The settings with the demo's fleet, unless another fleet is configured."""
    local = settings.local
    if not (local.virtual_gpus or local.virtual_nodes):
        local = local.model_copy(update={"virtual_nodes": DEMO_NODES})
    return settings.model_copy(update={"local": local, "is_demo": True})


def run(settings: Settings, *, out: TextIO, demo: bool = False, take_over: bool = False) -> bool:
    """Serve; returns whether the server ended because of a failure. Raises CannotStart.

    With `take_over`, a store of another home becomes this home's.
    """
    with ExitStack() as parts:
        listener = _prepared(settings, parts, settings.log_path)
        assembly = _waited(settings, listener, lambda: parts.enter_context(assembled(settings, take_over=take_over)))
        if demo:
            arrivals = Demo(assembly.context.controller, assembly.context.operation_runner.wake)
            arrivals.start()
            parts.callback(arrivals.stop)
        server = _Server(settings, assembly.app)
        _greet(out, listener, settings, assembly.one_time_password)
        server.serve_on(listener)
        return assembly.context.controller.failure is not None


def run_one_of_several(settings: Settings, *, out: TextIO) -> bool:
    """Serve as a standby, and as the leader when it is this server's turn; returns whether the process is to be
    replaced by a new standby. Raises CannotStart."""
    if problem := check_authorities(settings.high_availability.ca):
        raise CannotStart(f"high_availability.ca {settings.high_availability.ca}: {problem}", EXIT_FAILED)
    with ExitStack() as parts:
        listener = _prepared(settings, parts, _own_log(settings), is_shared=True)
        member = _waited(settings, listener, lambda: _start_member(settings, parts, listener, out))
        with _address_errors(settings.server.host, settings.server.port):
            listener.listen(BACKLOG)
        server = _Server(
            settings, member.app, must_end=member.membership.must_restart.is_set, end_now=lambda _: replace_process()
        )
        _greet(out, listener, settings, None)
        server.serve_on(listener)
        return member.membership.must_restart.is_set() or present_context(member.app).controller.failure is not None


def _start_member(settings: Settings, parts: ExitStack, listener: socket.socket, out: TextIO) -> OneOfSeveral:
    with ExitStack() as own:
        member = OneOfSeveral(
            settings,
            own,
            address=(settings.server.host, listener.getsockname()[1]),
            on_lead=lambda led: _greet(out, listener, settings, led.one_time_password),
        )
        parts.push(own.pop_all())
    return member


def replace_process() -> None:
    """Start the same program again in this process: nothing of the former leader is left, and the service manager sees
    the same process."""
    flush_output()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "corral.cli.main", *sys.argv[1:]])


def _own_log(settings: Settings) -> Path | None:
    """Servers that share a home have log files of their own."""
    path = settings.log_path
    name = settings.high_availability.name_at(settings.server.port)
    return None if path is None else path.with_name(f"{path.stem}-{name}{path.suffix}")


def _prepared(settings: Settings, parts: ExitStack, log_path: Path | None, *, is_shared: bool = False) -> socket.socket:
    """Lock the home, open the log and listen. Raises CannotStart."""
    parts.enter_context(_stoppable())
    try:
        parts.callback(HomeLock(settings.home, is_shared=is_shared).release)
    except HomeLocked as problem:
        raise CannotStart(str(problem), EXIT_LOCKED) from None
    except OSError as error:
        raise CannotStart(f"cannot use {settings.home}: {error.strerror}", EXIT_LOCKED) from None
    if log_path is not None:
        # After the lock: a second server must not write into the file of the first.
        parts.callback(_log_file(settings, log_path))
    _check_tls(settings)
    # Before the store is opened: a server that cannot listen must not take the store over.
    # One of several servers accepts connections when it can answer: until then callers ask another one at once.
    listener = _bound(settings.server.host, settings.server.port, listens=not is_shared)
    parts.callback(listener.close)
    return listener


def _waited(settings: Settings, listener: socket.socket, opened: Callable[[], Opened]) -> Opened:
    """Waits for a store that is unavailable, and answers requests with 503 meanwhile. Raises CannotStart."""
    place, pause = without_password(settings.database_url), FIRST_PAUSE_SECONDS
    with ExitStack() as waiting:
        while True:
            try:
                return opened()
            except StoreHeld as held:
                raise CannotStart(held_text(held.holder, settings.home), EXIT_HELD) from None
            except RunningElsewhere as problem:
                raise CannotStart(str(problem), EXIT_HELD) from None
            except UnreachableAddress as problem:
                raise CannotStart(str(problem), EXIT_FAILED) from None
            except StoreRefused as error:
                raise CannotStart(f"cannot open the store {place}: {error}", EXIT_STORE) from None
            except StoreUnavailable as error:
                log.error("the store %s cannot be used; trying again in %.1f s: %s", place, pause, error)
            except StoreError as error:
                raise CannotStart(f"cannot open the store {place}: {error}", EXIT_STORE) from None
            except (HistoryTooNew, HistoryUnavailable) as error:
                raise CannotStart(f"cannot open the metric history: {error}", EXIT_STORE) from None
            if pause == FIRST_PAUSE_SECONDS:
                interim = Interim(listener, settings.server)
                interim.start()
                waiting.callback(interim.stop)
                # The wait may be long.
                gc.enable()
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raises StopAsked in the main thread on a signal, until the server handles signals itself."""
    if threading.current_thread() is not threading.main_thread():
        yield  # a server inside of another program, which handles its signals
        return

    def stop(*_: object) -> None:
        _end_in_time(0)
        raise StopAsked

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_in_time(code: int, end_now: Callable[[int], None] | None = None) -> None:
    """End the process after a time, even if threads hang: the process may be killed at any moment anyway, and the next
    server finds the whole state in the store and at the engines."""
    timer = threading.Timer(STOP_SECONDS - 0.5, end_now or _end_now, (code,))
    timer.daemon = True
    timer.start()


def _end_now(code: int) -> None:
    try:
        busy = [worker.name for worker in workers_alive() if worker.health.is_busy]
        log.warning(
            "the server ends without waiting any longer for: %s", ", ".join(busy) or "requests that are being answered"
        )
        flush_output()
    finally:
        # Whatever fails before, nothing else ends this process in time.
        os._exit(code)


class _Server(uvicorn.Server):
    """Ends event streams when it stops, and stops when the controller has failed."""

    def __init__(
        self,
        settings: Settings,
        app: FastAPI,
        *,
        must_end: Callable[[], bool] = lambda: False,
        end_now: Callable[[int], None] | None = None,
    ) -> None:
        """`must_end`: the server stops although its controller works. `end_now` is called if it cannot stop in time."""
        proxies = list(settings.server.trusted_proxies)
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=limited_protocol(connection_limits(settings)),
                # For the Jupyter of workbenches. Without compression: it would cost memory for every open page.
                ws="websockets-sansio",
                ws_max_size=MAX_MESSAGE_BYTES,
                ws_ping_interval=30.0,
                ws_ping_timeout=60.0,
                ws_per_message_deflate=False,
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=proxies,
                timeout_keep_alive=settings.server.idle_seconds,
                timeout_graceful_shutdown=DRAIN_SECONDS,
                ssl_certfile=settings.server.tls_certificate or None,
                ssl_keyfile=settings.server.tls_key or None,
            )
        )
        self._app = app
        self._must_end = must_end
        self._end_now = end_now
        #: the context whose pages of workbenches are served
        self._opened: ServerContext | None = None
        server = settings.server
        self._certificate = CertificateFiles(server.tls_certificate, server.tls_key) if server.has_tls else None

    @property
    def _context(self) -> ServerContext:
        return present_context(self._app)

    def serve_on(self, listener: socket.socket) -> None:
        # Uvicorn raises the signal again when it has stopped; it must not end the process then.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.handle_exit)
        _tune_garbage_collection()
        self.run(sockets=[listener])

    async def on_tick(self, counter: int) -> bool:
        if self._context is not self._opened:
            await self._open_pages()
        # There are ten ticks in a second.
        if self._certificate is not None and self.config.ssl is not None and counter % int(CHECK_SECONDS * 10) == 0:
            self._certificate.reload_if_changed(self.config.ssl)
        return await super().on_tick(counter) or self._must_end() or not self._context.controller.is_alive

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        await self._open_pages()

    async def _open_pages(self) -> None:
        """The ports for pages of workbenches: the leader's, if there are several servers."""
        self._opened = self._context
        if not isinstance(self._opened.controller, Follower):
            await self._opened.origins.ports.start(partial(serve_at, self))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            _end_in_time(0)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._context.controller.failure is not None or self._must_end():
            _end_in_time(EXIT_FAILED, self._end_now)
        self._context.feed.close()
        await super().shutdown(sockets)


def connection_limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        header_seconds=settings.server.header_seconds,
        body_seconds=settings.server.body_seconds,
        per_address=settings.server.max_connections_per_address,
        trusted=settings.server.trusted_proxies,
    )


def _check_tls(settings: Settings) -> None:
    server = settings.server
    if server.has_tls and (problem := check_certificate(server.tls_certificate, server.tls_key)):
        raise CannotStart(f"the certificate {server.tls_certificate} cannot be used: {problem}", EXIT_FAILED)


def _bound(host: str, port: int, *, listens: bool) -> socket.socket:
    with _address_errors(host, port):
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        if listens:
            listener.listen(BACKLOG)
    return listener


@contextmanager
def _address_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {host} is in use: stop what uses it, or choose another one with --port"
        else:
            message = f"cannot listen on {host} port {port}: {error.strerror or error}"
        raise CannotStart(message, EXIT_PORT) from None


def _tune_garbage_collection() -> None:
    """Modules, settings and the jobs of the start are never searched: a collection before would take longer than to
    listen, and finds next to nothing. Requests leave few cycles: with the default thresholds the collector runs several
    times for each submitted job and frees next to nothing."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def _greet(out: TextIO, listener: socket.socket, settings: Settings, one_time_password: str | None) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if settings.server.has_tls else "http"
    text = f"corral {VERSION} runs at {scheme}://{shown}:{port}\n"
    if one_time_password is not None:
        text += (
            f"This is the first start. Sign in as user operator with this one-time password:\n  {one_time_password}\n"
        )
    _say(out, text)


def _say(out: TextIO, text: str) -> None:
    """Write a message. The server works without it: it may be written into a file of a full disk."""
    try:
        out.write(text)
        out.flush()
    except OSError as error:
        log.error("the server's output cannot be written, and this is lost: %s", error)
