"""Control messages of a shell: the size of the terminal and the end of the input. Wrong ones change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from corral.control.ports import ShellChannel
from corral.server.routes.jobs import shells


class Recorded:
    """A stream that records what it is asked."""

    exit_code: int | None = None

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def send(self, data: bytes) -> None:
        self.asked.append(data)

    async def end_input(self) -> None:
        self.asked.append("end")

    async def resize(self, columns: int, rows: int) -> None:
        self.asked.append((columns, rows))

    async def output(self) -> AsyncIterator[tuple[ShellChannel, bytes]]:
        return
        yield

    async def close(self) -> None:
        self.asked.append("close")


def asked(text: str) -> list[object]:
    stream = Recorded()
    asyncio.run(shells._obey(text, stream))
    return stream.asked


def test_size_and_end() -> None:
    assert asked('{"resize": [80, 25]}') == [(80, 25)]
    assert asked('{"end": true}') == ["end"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '{"resize": [0, 25]}',
        '{"resize": [80, 10001]}',
        '{"resize": [true, true]}',
        '{"resize": ["80", 25]}',
        '{"end": 1}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 5_000,
    ],
)
def test_wrong_messages(text: str) -> None:
    assert asked(text) == []
