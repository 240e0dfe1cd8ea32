"""Reads single keys from a terminal, and restores the terminal in every case."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

#: The sequences that terminals send for keys without a character.
_SEQUENCES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\x1b[H": "home",
    "\x1b[1~": "home",
    "\x1bOH": "home",
    "\x1b[F": "end",
    "\x1b[4~": "end",
    "\x1bOF": "end",
    "\t": "tab",
    "\x1b": "escape",
}
#: How long the rest of such a sequence may take to arrive over a slow connection.
_SEQUENCE_SECONDS = 0.05


class Keyboard:
    """Waits for a key, for a change of the terminal's size, or for `wake` from any thread."""

    def __init__(self, keys_from: int, woken_by: int, wake: int) -> None:
        self._keys_from = keys_from
        self._woken_by = woken_by
        self._wake = wake

    def wake(self) -> None:
        # A full pipe wakes the reader already; a closed pipe has no reader.
        with suppress(OSError):
            os.write(self._wake, b"!")

    def wait(self, seconds: float) -> str | None:
        """The name of the key; None after another event or the timeout. The end of input counts as q."""
        ready, _, _ = select.select([self._keys_from, self._woken_by], [], [], seconds)
        if self._woken_by in ready:
            os.read(self._woken_by, 1024)
        if self._keys_from not in ready:
            return None
        typed = os.read(self._keys_from, 1)
        if not typed:
            return "q"
        if typed == b"\x1b":
            while len(typed) < 6 and select.select([self._keys_from], [], [], _SEQUENCE_SECONDS)[0]:
                typed += os.read(self._keys_from, 1)
                if (typed[-1:].isalpha() and typed != b"\x1bO") or typed[-1:] == b"~":
                    break
        text = typed.decode(errors="replace")
        return _SEQUENCES.get(text, text)


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Switches the terminal to single keys without echo. Needs a terminal on stdin."""
    keys_from = sys.stdin.fileno()
    before = termios.tcgetattr(keys_from)
    woken_by, wake = os.pipe()
    os.set_blocking(wake, False)
    keys = Keyboard(keys_from, woken_by, wake)

    def resized(number: int, where: FrameType | None) -> None:
        keys.wake()

    def ended(number: int, where: FrameType | None) -> None:
        # An exception, so that all context managers clean up.
        raise SystemExit(128 + number)

    handlers: dict[int, Any] = {}
    try:
        handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, resized)
        for number in (signal.SIGTERM, signal.SIGHUP):
            handlers[number] = signal.signal(number, ended)
        tty.setcbreak(keys_from)
        yield keys
    finally:
        termios.tcsetattr(keys_from, termios.TCSADRAIN, before)
        for changed, handler in handlers.items():
            signal.signal(changed, handler)
        os.close(wake)
        os.close(woken_by)
