"""Drains of nodes: corral withholds a node by draining it in Slurm, and observes changes that others make there.

    ROOT/withheld/NODE  corral has drained this node, and has not resumed it

The file is written after the drain and removed after the resume, so that a server that dies in between repeats it. If a
node with a file is not drained with corral's reason, another user of Slurm has changed it since.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from corral.control.ports import EngineUnavailable, Withholding
from corral.engines.slurm.attempts import run_directory
from corral.engines.slurm.cluster.nodes import is_down, is_withheld
from corral.engines.slurm.slurm_api.commands import Slurm, SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode

log = logging.getLogger("corral.engines.slurm")

_Answer = TypeVar("_Answer")

#: The prefix of the reason of corral's drains.
PREFIX = "corral: "
#: How long no node is changed after this account had no right to: rights may be given meanwhile.
ASK_AGAIN_SECONDS = 300.0
_WITHHELD_HERE_ONLY = "this account may not drain nodes of Slurm: those that are drained are withheld in corral only"
#: Messages of Slurm and its interfaces that refuse whatever the node. Other refusals concern the present state of the
#: node.
_MAY_NOT = ("Access/permission denied", "Invalid user id", "cannot change nodes")


class NodeDrains:
    """Drains and resumes nodes in Slurm. Safe for several threads: each node has one file."""

    def __init__(self, root: Path, slurm: Slurm) -> None:
        self._root = root / "withheld"
        self._root.mkdir(exist_ok=True)
        self._slurm = slurm
        #: Slurm does not let this account change nodes
        self._refused_until = float("-inf")
        #: why Slurm did not change a node at the last try; logged once, as it is tried repeatedly
        self._refusals: dict[str, str] = {}

    @property
    def note(self) -> str:
        """The reason why drains do not work; "" if they do."""
        return _WITHHELD_HERE_ONLY if self._may_not else ""

    @property
    def _may_not(self) -> bool:
        return time.monotonic() < self._refused_until

    def found(self, nodes: Iterable[SlurmNode]) -> dict[str, Withholding] | None:
        """Whether the nodes that corral drained are still drained; None if Slurm does not let this account drain."""
        if self._may_not:
            return None
        drained = set(os.listdir(self._root))
        return {
            node.name: Withholding.KEPT if is_down(node) or _is_ours(node) else Withholding.OVERRULED
            for node in nodes
            if node.name in drained
        }

    def withhold(self, name: str, reason: str) -> None:
        node = self._node(name)
        if node is None:
            return
        if not _is_ours(node):
            earlier = f" (before: {node.reason})" if is_withheld(node) and node.reason else ""
            if not self._set(name, is_withheld=True, reason=f"{PREFIX}{reason}{earlier}"):
                return  # without a file the drain is tried again
        if not self._may_not:
            run_directory.write_text(self._root / name, f"{reason}\n")

    def release(self, name: str, *, force: bool) -> None:
        node = self._node(name)
        must_change = node is not None and (_is_ours(node) or (force and is_withheld(node)))
        if must_change and not self._set(name, is_withheld=False, reason=""):
            return
        (self._root / name).unlink(missing_ok=True)

    def _node(self, name: str) -> SlurmNode | None:
        """The node as it is now; None if Slurm does not know it, or this account may change none."""
        if self._may_not:
            return None
        return next((node for node in _asked(self._slurm.nodes) if node.name == name), None)

    def _set(self, name: str, *, is_withheld: bool, reason: str) -> bool:
        """Whether this is settled: Slurm did it, or does not let this account."""
        try:
            _asked(lambda: self._slurm.set_node(name, is_withheld=is_withheld, reason=reason))
        except SlurmRefused as refusal:
            if any(text in str(refusal) for text in _MAY_NOT):
                self._refused_until = time.monotonic() + ASK_AGAIN_SECONDS
            self._log_refusal(name, str(refusal))
            return self._may_not
        self._refusals.pop(name, None)
        return True

    def _log_refusal(self, name: str, refusal: str) -> None:
        if self._may_not:
            log.warning(
                "Slurm does not let this account drain and resume nodes (%s): node %s is withheld in corral only. "
                "Make it an operator of Slurm: sacctmgr modify user NAME set adminlevel=Operator",
                refusal,
                name,
            )
        elif self._refusals.get(name) != refusal:
            self._refusals[name] = refusal
            log.warning("Slurm does not change node %s now, will try again: %s", name, refusal)


def _is_ours(node: SlurmNode) -> bool:
    return is_withheld(node) and node.reason.startswith(PREFIX.strip())


def _asked(ask: Callable[[], _Answer]) -> _Answer:
    try:
        return ask()
    except SlurmUnavailable as error:
        raise EngineUnavailable(f"Slurm: {error}") from error
