"""Reads at one of several servers: they wait a moment for a store that is away, but not for one that is silent.

A store that restarts, or fails over, is back after seconds: a read that is refused meanwhile is tried again here before
its caller hears of it. Behind a network that loses every packet a read would hang until the operating system gives up:
it is refused early, so that its caller asks another server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corral.server.http.problems import MEDIA_TYPE, store_unavailable

#: How long a read is tried again, and the pause between two tries.
WAIT_SECONDS = 3.0
PAUSE_SECONDS = 0.2
#: How long a read without an answer may take if the store does not answer, and how often that is checked.
SILENT_SECONDS = 2.0
LOOK_SECONDS = 0.25
#: The time after which a caller of a server that ends may ask another one.
ENDING_SECONDS = b"1"
_PASSING = "/problems/store-unavailable"


class StoreView(Protocol):
    """The knowledge that a server has of its store."""

    @property
    def store_answers(self) -> bool:
        """Whether the store has answered lately."""

    @property
    def is_ending(self) -> bool:
        """Whether this server stops, or starts again: nothing waits for it."""


class WaitingReads:
    """An ASGI layer for requests that change nothing, and so can be repeated."""

    def __init__(self, app: ASGIApp, view: StoreView) -> None:
        self._app = app
        self._view = view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        now = asyncio.get_running_loop().time
        wait_until = now() + WAIT_SECONDS
        clean, replayed = dict(scope), _Replayed(receive)
        while True:
            answer = _HeldAnswer(send)
            if not await self._answered(scope, replayed, answer):
                await store_unavailable().response()(scope, receive, send)
                return
            if not answer.is_passing or self._view.is_ending or now() >= wait_until:
                await answer.release(is_ending=self._view.is_ending)
                return
            await asyncio.sleep(PAUSE_SECONDS)
            _restore(scope, clean)
            replayed.rewind()

    async def _answered(self, scope: Scope, receive: Receive, answer: _HeldAnswer) -> bool:
        """False if it was given up, before anything was sent."""
        now = asyncio.get_running_loop().time
        begun_at = now()
        answering = asyncio.ensure_future(_run(self._app, scope, receive, answer))
        try:
            while not answering.done():
                await asyncio.wait({answering}, timeout=None if answer.is_begun else LOOK_SECONDS)
                is_late = now() - begun_at >= SILENT_SECONDS and not answer.is_begun
                if is_late and not answering.done() and not self._view.store_answers:
                    return False
            answering.result()
            return True
        finally:
            if not answering.done():
                answering.cancel()
                with suppress(asyncio.CancelledError):
                    await answering


async def _run(app: ASGIApp, scope: Scope, receive: Receive, answer: _HeldAnswer) -> None:
    await app(scope, receive, answer.send)


def _restore(scope: MutableMapping[str, Any], clean: MutableMapping[str, Any]) -> None:
    """The request as it was before routes noted themselves in it. The same object: outer layers look at it."""
    scope.clear()
    scope.update(clean)


class _HeldAnswer:
    """Passes an answer on, but keeps a refusal by 503 back."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self.is_begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_begun = True
            if message["status"] == 503 and _is_problem(message):
                self._held.append(message)
                return
        if self._held:
            self._held.append(message)
        else:
            await self._send(message)

    async def release(self, *, is_ending: bool) -> None:
        """A server that ends sends its callers to another one soon: they need not wait until it is back."""
        if is_ending and self._held:
            kept = [pair for pair in self._held[0]["headers"] if bytes(pair[0]).lower() != b"retry-after"]
            self._held[0] = {**self._held[0], "headers": [*kept, (b"retry-after", ENDING_SECONDS)]}
        for message in self._held:
            await self._send(message)

    @property
    def is_passing(self) -> bool:
        """Whether it was refused only because the store is away."""
        if not self._held:
            return False
        body = b"".join(message.get("body", b"") for message in self._held[1:])
        return bool(json.loads(body).get("type") == _PASSING) if body else False


def _is_problem(message: Message) -> bool:
    named = {bytes(name).lower(): bytes(value) for name, value in message["headers"]}
    return named.get(b"content-type", b"").startswith(MEDIA_TYPE.encode())


class _Replayed:
    """Repeats for each try everything that the caller has sent."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []
        self._place = 0

    def rewind(self) -> None:
        self._place = 0

    async def __call__(self) -> Message:
        if self._place == len(self._messages):
            self._messages.append(await self._receive())
        self._place += 1
        return self._messages[self._place - 1]
