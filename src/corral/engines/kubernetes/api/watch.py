"""Follows one kind of object: list, then watch with bookmarks; list again if the API server has forgotten the version.

The cost is that of the changes. An API server that fails is asked again after a pause that grows.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from enum import Enum, auto
from http import HTTPStatus
from typing import Protocol

import httpx

from corral.engines.kubernetes.api.client import (
    TIMEOUT_SECONDS,
    ApiError,
    ApiGone,
    ApiUnavailable,
    Json,
    check,
    parse,
    unreachable,
)
from corral.engines.kubernetes.api.credentials import CredentialError

log = logging.getLogger("corral.engines.kubernetes")

#: The API server ends a watch after this long.
WATCH_SECONDS = 240
#: API servers send a bookmark every minute: a watch that shows nothing for longer, as behind a proxy that has lost its
#: other end, is begun again where it was.
SILENT_SECONDS = 90.0
PAGE = 500
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
#: A watch that ends sooner, as those of an API server that stops, is not begun again at once.
SHORTEST_WATCH_SECONDS = 1.0


class Listener(Protocol):
    """Called in the event loop."""

    def replace(self, items: Sequence[Json]) -> None:
        """Replaces all known objects by these."""

    def put(self, item: Json) -> None:
        """The object is new, or has changed."""

    def remove(self, item: Json) -> None:
        """The object is gone."""

    def failed(self, error: Exception) -> None:
        """Reports that the state is unknown at this moment."""


async def followed(watch: Watch, listener: Listener) -> None:
    """Run the watch; the listener knows of what ends it."""
    try:
        await watch.run()
    except Exception as error:
        listener.failed(error)
        raise


class Listing(Enum):
    """Whether objects can be listed. OPEN, too, if the API server does not answer: then the watch reports the error."""

    OPEN = auto()
    #: this account has no right to
    FORBIDDEN = auto()
    #: this Kubernetes has no such objects
    ABSENT = auto()


async def listing_of(client: httpx.AsyncClient, path: str) -> Listing:
    try:
        response = await client.get(path, params={"limit": "1"})
    except (httpx.HTTPError, CredentialError):
        return Listing.OPEN
    known: dict[int, Listing] = {HTTPStatus.FORBIDDEN: Listing.FORBIDDEN, HTTPStatus.NOT_FOUND: Listing.ABSENT}
    return known.get(response.status_code, Listing.OPEN)


class Watch:
    def __init__(
        self, client: httpx.AsyncClient, path: str, listener: Listener, params: Mapping[str, str] | None = None
    ) -> None:
        self._client = client
        self._path = path
        self._listener = listener
        self._params = dict(params or {})
        self._version = ""
        #: lists and watches that were begun
        self.requests = 0

    async def run(self) -> None:
        """Watches until the task is cancelled. Raises ApiError if the API server refuses the watch permanently."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                if not self._version:
                    await self._list()
                    pause = FIRST_PAUSE_SECONDS
                began_at = time.monotonic()
                await self._watch()
                pause = FIRST_PAUSE_SECONDS
                if time.monotonic() - began_at < SHORTEST_WATCH_SECONDS:
                    await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            except httpx.ReadTimeout:
                # While it watched, else a list was too slow.
                if not self._version:
                    self._listener.failed(ApiUnavailable("the API server is too slow"))
                    await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                    pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
            except ApiGone:
                self._version = ""
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            except (ApiUnavailable, httpx.HTTPError, CredentialError, ValueError) as error:
                self._listener.failed(ApiUnavailable(unreachable(error)))
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
                # A list shows that the API server answers again, and what was missed.
                self._version = ""

    async def _list(self) -> None:
        items: list[Json] = []
        version, token = "", ""
        while True:
            more = {"continue": token} if token else {}
            self.requests += 1
            response = await self._client.get(self._path, params={**self._params, "limit": str(PAGE), **more})
            check(response.status_code, response.content)
            body = parse(response.content)
            items += body.get("items") or ()
            version, token = body["metadata"]["resourceVersion"], body["metadata"].get("continue", "")
            if not token:
                break
        self._listener.replace(items)
        self._version = version

    async def _watch(self) -> None:
        params = {
            **self._params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        timeout = httpx.Timeout(20.0, read=SILENT_SECONDS)
        self.requests += 1
        async with AsyncExitStack() as parts:
            stream = self._client.stream("GET", self._path, params=params, timeout=timeout)
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    response = await parts.enter_async_context(stream)
            except TimeoutError:
                raise ApiUnavailable("the API server begins no watch") from None
            if response.status_code >= 400:
                check(response.status_code, await response.aread())
            async for line in response.aiter_lines():
                if line:
                    self._take(json.loads(line))

    def _take(self, event: Json) -> None:
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            check(int(item.get("code") or 500), json.dumps(item).encode())
            raise ApiError(int(item.get("code") or 500), str(item.get("message")))
        self._version = item["metadata"]["resourceVersion"]
        if kind in ("ADDED", "MODIFIED"):
            self._listener.put(item)
        elif kind == "DELETED":
            self._listener.remove(item)
