"""A pure parser of server-sent events: text in, events out. The caller connects and resumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerEvent:
    #: the last id seen on the stream, also when this event brought none; "" before the first
    id: str = ""
    event: str = "message"
    data: str = ""


def parse(chunks: Iterable[str]) -> Iterator[ServerEvent]:
    """The events in a stream of text chunks. An incomplete event at the end of the stream is dropped, as the standard
    says: after a reconnect the server sends it again."""
    last_id, event, data = "", "", list[str]()
    for line in _lines(chunks):
        if not line:
            if data:
                yield ServerEvent(id=last_id, event=event or "message", data="\n".join(data))
            event, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            event = value
        elif field == "id" and "\0" not in value:
            last_id = value
        # anything else is a comment (an empty field name, used as a ping) or an unknown field


def _lines(chunks: Iterable[str]) -> Iterator[str]:
    """Complete lines. Only CR, LF and CRLF end a line: `str.splitlines` would also cut at characters that a
    log may well contain, such as a form feed."""
    rest = ""
    for chunk in chunks:
        rest += chunk
        # a CR at the end of a chunk may be half of a CRLF: it is kept for the next chunk
        keep = "\r" if rest.endswith("\r") else ""
        text = rest.removesuffix("\r") if keep else rest
        *complete, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rest += keep
        yield from complete
    if rest.endswith("\r"):
        yield rest.removesuffix("\r")
