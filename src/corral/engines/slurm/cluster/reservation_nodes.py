"""Which nodes are corral's where its jobs are given to a reservation of Slurm's: those, and no others.

Nodes of a reservation are closed to everybody else's jobs, and jobs of a reservation to every other node.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Sequence

from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode

log = logging.getLogger("corral.engines.slurm")

#: A reservation is made and changed by people, seldom.
ASK_SECONDS = 30.0
_OPTION = "--reservation"


def reservations_in(options: Sequence[str]) -> tuple[str, ...]:
    """Of `--reservation=a,b`, or of the same in two words."""
    words = [word.partition("=") for word in options]
    named = [value for name, gap, value in words if name == _OPTION and gap]
    named += [after for word, after in itertools.pairwise(options) if word == _OPTION]
    return tuple(name for value in named for name in value.split(",") if name)


class ReservationNodes:
    def __init__(self, slurm: Slurm, options: Sequence[str]) -> None:
        self._slurm = slurm
        self._names = reservations_in(options)
        self._nodes: frozenset[str] | None = None
        self._asked_at = float("-inf")

    def nodes(self, seen: Iterable[SlurmNode], now: float) -> frozenset[str] | None:
        """None where jobs are given to none. Of one that Slurm tells nothing about, all nodes: it may be hidden from
        this account, and its jobs are refused in words if it is not there."""
        if not self._names:
            return None
        if now >= self._asked_at + ASK_SECONDS:
            self._asked_at = now
            self._ask()
        return self._nodes if self._nodes is not None else frozenset(node.name for node in seen)

    def _ask(self) -> None:
        try:
            self._nodes = frozenset(node for name in self._names for node in self._slurm.reserved(name))
        except SlurmRefused as refusal:
            log.warning("reservation %s: %s", ",".join(self._names), refusal)
            self._nodes = None
        except SlurmUnavailable as error:
            # What was known is seldom out of date.
            log.info("reservation %s: %s", ",".join(self._names), error)
