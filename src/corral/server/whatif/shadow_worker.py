"""Plans with the shadow policy, in a process of its own: `python -m corral.server.whatif.shadow_worker`.

It reads orders from its input and writes one answer to each; the format is private to both sides. It ends when its
input ends, hence with the server.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from corral.control.records import CycleRecord, DifferenceRecord
from corral.control.whatif.shadow import Shadow
from corral.core.whatif.scenario import scenario_of
from corral.files.memory_limit import limit_memory

NICENESS = 19


@dataclass(frozen=True, kw_only=True, slots=True)
class Begin:
    """Start from this snapshot, with these rules instead of the live ones."""

    changes: Mapping[str, Any]
    entries: Sequence[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Follow:
    cycles: Sequence[CycleRecord]
    #: False: only apply the entry, to catch up
    decides: bool


#: One for each cycle; a text is the reason why it could not be applied.
Answer = Sequence[DifferenceRecord | None] | str


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    shadow: Shadow | None = None
    while True:
        try:
            order = pickle.load(orders)
        except EOFError:
            return
        answer: Answer
        try:
            if isinstance(order, Begin):
                shadow = Shadow(scenario_of(order.changes))
                shadow.catch_up(order.entries)
                answer = []
            else:
                assert shadow is not None
                answer = [shadow.follow(cycle, decides=order.decides) for cycle in order.cycles]
        except Exception as error:  # noqa: BLE001 - the error is reported to the server, which starts again
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    # Imported under its own name, so that both sides pickle the same classes.
    from corral.server.whatif import shadow_worker

    os.nice(NICENESS)
    limit_memory()
    shadow_worker.serve(sys.stdin.buffer, sys.stdout.buffer)
