"""Edits that apply only to what the caller has seen: ETag and If-Match.

The ETag of an object is the digest of the fields that its PATCH can change, so that readings, counts and states leave
it alone. PATCH requests for one path run one after the other: between the comparison and the change no other edit
comes in. Changes are made by one server, the leader, so a lock of this process suffices.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from corral.server.http.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

IF_MATCH = "If-Match"
#: A request's `time` is shown as `time_limit_seconds`, its `memory` as `memory_bytes`.
UNITS = ("", "_seconds", "_limit_seconds", "_bytes")
#: Fields of requests that are shown under another name.
SHOWN_AS = {
    "add_users": "users",
    "gpu_ids": "nodes",
    "max_gpus": "elastic",
    "min_gpus": "elastic",
    "model": "models",
    "move_users": "users",
    "remove_users": "users",
}
Handler = Callable[[Request], Awaitable[Response]]


def etag_of(body: bytes, fields: Iterable[str]) -> str | None:
    """The ETag of an object by its JSON and the names of the fields that can be changed; None for no object."""
    try:
        content = json.loads(body)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    names = set(fields)
    text = json.dumps(
        {name: _stable(content[name], names) for name in shown_names(names) & content.keys()},
        sort_keys=True,
        separators=(",", ":"),
    )
    return f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'


def shown_names(fields: Iterable[str]) -> set[str]:
    """The names under which an object shows what these fields of a request change."""
    return {name + unit for field in fields for name in (field, SHOWN_AS.get(field, field)) for unit in UNITS}


def _stable(value: Any, names: set[str]) -> Any:
    """The part of a shown value that an edit can change: objects with readings count by their id only."""
    if isinstance(value, list):
        return [_stable(item, names) for item in value]
    if isinstance(value, dict):
        kept = value.keys() & (names if value.keys() & names else {"id"})
        return {key: value[key] for key in kept or value}
    return value


def is_match(header: str, etag: str) -> bool:
    return header.strip() == "*" or etag in {tag.strip() for tag in header.split(",")}


class LongObject(Response):
    """The JSON of an object with a list of many others, whose ETag is made from a short form: to read the whole again
    takes a second, in which no other request is answered."""

    media_type = "application/json"

    def __init__(self, body: bytes, short: bytes, status_code: int = 200) -> None:
        """`short` is the JSON of the same object, in which each of the many has its id only."""
        super().__init__(body, status_code)
        self.short = short


def with_etag(response: Response, fields: Iterable[str]) -> Response:
    """The answer, with its ETag if it shows an object."""
    if response.status_code == 200 and (etag := etag_of(_compared(response), fields)) is not None:
        response.headers["ETag"] = etag
    return response


def _compared(response: Response) -> bytes:
    return response.short if isinstance(response, LongObject) else bytes(response.body)


def refuse_unsupported(request: Request) -> None:
    """An edit must not pass over the condition of its caller."""
    if IF_MATCH in request.headers:
        raise Problem(
            412, "No ETag", "This object has no ETag: send the edit without If-Match.", slug="precondition-unsupported"
        )


async def edited(request: Request, fields: Iterable[str], read: Handler, edit: Handler) -> Response:
    """Carry out a PATCH, if the object is still the one that If-Match names."""
    async with _alone(request.url.path):
        wanted = request.headers.get(IF_MATCH)
        if wanted is not None:
            await _check(request, fields, read, wanted)
        return with_etag(await edit(request), fields)


async def _check(request: Request, fields: Iterable[str], read: Handler, wanted: str) -> None:
    seen = await read(Request({**request.scope, "method": "GET", "query_string": b""}, request.receive))
    now = etag_of(_compared(seen), fields)
    if now is not None and not is_match(wanted, now):
        detail = f"It was changed since you read it: its ETag is {now}. Read it again, and repeat your change."
        raise Problem(412, "Changed meanwhile", detail, slug="changed-meanwhile", headers={"ETag": now})


class _Waiting:
    """A lock, and how many requests use it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


_locks: dict[tuple[int, str], _Waiting] = {}


@asynccontextmanager
async def _alone(path: str) -> AsyncIterator[None]:
    key = (id(asyncio.get_running_loop()), path)
    waiting = _locks.setdefault(key, _Waiting())
    waiting.users += 1
    try:
        async with waiting.lock:
            yield
    finally:
        waiting.users -= 1
        if not waiting.users:
            del _locks[key]
