"""Values that need several readings: how long a GPU has been idle under its job, and its recent errors.

`see` is called for every reading, from one thread. The data are lost with a restart: "no recent errors" is reported
only after the GPU was watched for that long.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

#: How long an error counts as recent.
ERROR_SECONDS = 600.0
#: Utilization below this counts as idle: the driver's own work may show as a percent.
IDLE_BELOW = 0.02
#: How many errors are kept per GPU.
KEPT_ERRORS = 50


@dataclass(slots=True)
class _Watched:
    #: the attempts that hold the GPU; None if not known yet
    holders: tuple[str, ...] | None = None
    unused_since: float | None = None
    has_utilization: bool = False
    seen_at: float = 0.0
    ecc_uncorrected: int | None = None
    remap_failed: bool | None = None
    errors: list[tuple[float, str]] = field(default_factory=list)


class Recent:
    def __init__(self, *, since: float) -> None:
        self._since = since
        self._watched: dict[str, _Watched] = {}

    def see(
        self,
        gpu_id: str,
        at: float,
        *,
        holders: tuple[str, ...] = (),
        utilization: float | None = None,
        xids: tuple[int, ...] = (),
        ecc_uncorrected: int | None = None,
        remap_failed: bool | None = None,
    ) -> None:
        """Add a reading. `holders` are the attempts whose processes run on the GPU."""
        watched = self._watched.setdefault(gpu_id, _Watched())
        self._see_use(watched, at, holders, utilization)
        self._see_errors(watched, at, xids, ecc_uncorrected, remap_failed)
        watched.seen_at = at

    def resume(self, gpu_id: str, unused_since: float) -> None:
        """Restore from before a restart that the GPU is idle since then. A later use or another holder ends that."""
        self._watched[gpu_id] = _Watched(unused_since=unused_since)

    def retain(self, gpu_ids: Container[str]) -> None:
        for gone in [gpu_id for gpu_id in self._watched if gpu_id not in gpu_ids]:
            del self._watched[gone]

    def watches(self, gpu_id: str) -> bool:
        """Whether anything was seen of the GPU."""
        return gpu_id in self._watched

    def idle_seconds(self, gpu_id: str) -> float | None:
        """How long the GPU has been idle under its present job, as of its last reading; 0 without a job, None if that
        reading has no utilization."""
        watched = self._watched.get(gpu_id)
        if watched is None or watched.holders is None:
            return None
        if watched.unused_since is None:
            return 0.0
        return max(0.0, watched.seen_at - watched.unused_since) if watched.has_utilization else None

    def errors(self, gpu_id: str, now: float) -> tuple[str, ...] | None:
        """Recent errors, oldest first; None while the GPU was not watched for long enough to report none."""
        watched = self._watched.get(gpu_id)
        if watched is None:
            return None
        watched.errors = [(at, text) for at, text in watched.errors if now - at < ERROR_SECONDS]
        if not watched.errors and now - self._since < ERROR_SECONDS:
            return None
        return tuple(text for _, text in watched.errors)

    def _see_use(self, watched: _Watched, at: float, holders: tuple[str, ...], utilization: float | None) -> None:
        holders_changed = watched.holders is not None and watched.holders != holders
        watched.holders, watched.has_utilization = holders, utilization is not None
        if not holders:
            watched.unused_since = None
        elif holders_changed or watched.unused_since is None or (utilization is not None and utilization >= IDLE_BELOW):
            watched.unused_since = at

    def _see_errors(
        self, watched: _Watched, at: float, xids: tuple[int, ...], ecc: int | None, remap_failed: bool | None
    ) -> None:
        found = [f"XID {code}" for code in xids]
        if ecc is not None:
            # The counter counts since the driver was loaded: the value of the first reading is old.
            if watched.ecc_uncorrected is not None and ecc > watched.ecc_uncorrected:
                found.append(f"{ecc - watched.ecc_uncorrected} uncorrectable memory errors")
            watched.ecc_uncorrected = ecc
        if remap_failed is not None:
            if remap_failed and watched.remap_failed is False:
                found.append("a row of its memory could not be remapped")
            watched.remap_failed = remap_failed
        watched.errors = [*watched.errors, *((at, text) for text in found)][-KEPT_ERRORS:]
