"""The nodes that corral may use if its jobs are submitted to a reservation of Slurm: those of the reservation only.

Nodes of a reservation are closed to other jobs, and jobs of a reservation run on no other nodes.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Sequence

from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode

log = logging.getLogger("corral.engines.slurm")

#: Administrators change reservations rarely.
ASK_SECONDS = 30.0
_OPTION = "--reservation"


def reservations_in(options: Sequence[str]) -> tuple[str, ...]:
    """Reads the names from `--reservation=a,b`, or the same as two arguments."""
    parts = [word.partition("=") for word in options]
    named = [value for name, gap, value in parts if name == _OPTION and gap]
    named += [after for word, after in itertools.pairwise(options) if word == _OPTION]
    return tuple(name for value in named for name in value.split(",") if name)


class ReservationNodes:
    def __init__(self, slurm: Slurm, options: Sequence[str]) -> None:
        self._slurm = slurm
        self._names = reservations_in(options)
        self._nodes: frozenset[str] | None = None
        self._asked_at = float("-inf")

    def nodes(self, seen: Iterable[SlurmNode], now: float) -> frozenset[str] | None:
        """The nodes of the reservations; None if jobs are submitted to no reservation. All nodes if Slurm reports
        nothing about the reservation: it may be hidden from this account, and if it does not exist, Slurm refuses the
        jobs with a message.
        """
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
            # The last answer is rarely out of date.
            log.info("reservation %s: %s", ",".join(self._names), error)
