"""The warning: SIGTERM, which the platform sends before it ends an attempt, a grace time ahead.

The handler is installed by the first call that asks whether to stop, and not before: a program that never asks must end
at once as without it. It only records the signal, and then calls the previous handler. Forked children get the previous
handling back, or `Process.terminate` could not end them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any


class Listener:
    """Handles the warning of one process. There is one signal, so there is one of these (`WARNING`)."""

    def __init__(self) -> None:
        self._pid = 0
        self._is_received = False
        self._before: Any = None
        self._printed = False

    @property
    def is_received(self) -> bool:
        return self._is_received and self._pid == os.getpid()

    def watch(self) -> bool:
        """Install the handler; False if this is not the main thread, in which alone Python can do that."""
        if self._pid == os.getpid():
            return True
        if threading.current_thread() is not threading.main_thread():
            if not self._printed:
                self._printed = True
                sys.stderr.write(
                    "corral: warnings cannot be received: call corral.checkpoint.watch() once in the main thread\n"
                )
            return False
        self._is_received = False
        self._before = signal.getsignal(signal.SIGTERM)
        if self._before == self._note:
            self._before = signal.SIG_DFL
        signal.signal(signal.SIGTERM, self._note)
        self._pid = os.getpid()
        return True

    def forget(self) -> None:
        """Restore the previous handling of the signal."""
        if self._pid and signal.getsignal(signal.SIGTERM) == self._note:
            # None means a handler that is not Python's; it cannot be restored.
            signal.signal(signal.SIGTERM, signal.SIG_DFL if self._before is None else self._before)
        self._pid = 0
        self._is_received = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        # No lock, no output: this runs between any two instructions of the program.
        self._is_received = True
        if callable(self._before):
            self._before(number, frame)


WARNING = Listener()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WARNING.forget)


def ignore_in_worker(*_: object) -> None:
    """Ignores warnings in processes that load data: a warning goes to all processes of a job, and the training needs
    its data to continue.

    `DataLoader(…, worker_init_fn=checkpoint.ignore_in_worker)`

    The training itself must still be able to end them: Python waits at its exit for workers that it has terminated, and
    a worker that ignored that would keep the whole program from ending. So only signals of other processes are ignored.
    """
    parent = os.getppid()
    # Blocked for every thread of the worker, and taken by one thread that can see which process sent it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_by, args=(parent,), name="corral-warning", daemon=True).start()


def _end_by(parent: int) -> None:
    while True:
        sent = signal.sigwaitinfo({signal.SIGTERM})
        if sent.si_pid in (parent, os.getpid()) or os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)
