"""What a single reading cannot tell: how long a GPU has done nothing under its job, and which errors came lately.

Fed with every reading, from one thread. It forgets with a restart, and then knows that it does not know: it says "no
errors lately" only after it has watched for that long.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: An error stays news for this long.
ERROR_SECONDS = 600.0
#: Use below this is none: a driver's own work shows as a percent now and then.
IDLE_BELOW = 0.02
#: Errors that are remembered of one GPU.
KEPT_ERRORS = 50


@dataclass(slots=True)
class _Watched:
    #: the attempts that hold it; None when that is not known yet
    holders: tuple[str, ...] | None = None
    unused_since: float | None = None
    tells_use: bool = False
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
        """One reading. `holders` are the attempts whose processes run on it."""
        watched = self._watched.setdefault(gpu_id, _Watched())
        self._see_use(watched, at, holders, utilization)
        self._see_errors(watched, at, xids, ecc_uncorrected, remap_failed)
        watched.seen_at = at

    def resume(self, gpu_id: str, unused_since: float) -> None:
        """It was known before a restart to be unused since then. A later use or another holder ends that."""
        self._watched[gpu_id] = _Watched(unused_since=unused_since)

    def retain(self, gpu_ids: set[str]) -> None:
        for gone in self._watched.keys() - gpu_ids:
            del self._watched[gone]

    def idle_seconds(self, gpu_id: str) -> float | None:
        """How long it has done nothing under its present job, as of its last reading; 0 when nobody holds it, None when
        that reading does not tell its use."""
        watched = self._watched.get(gpu_id)
        if watched is None or watched.holders is None:
            return None
        if watched.unused_since is None:
            return 0.0
        return max(0.0, watched.seen_at - watched.unused_since) if watched.tells_use else None

    def errors(self, gpu_id: str, now: float) -> tuple[str, ...] | None:
        """What it reported lately, oldest first; None while it was not watched for long enough to say "nothing"."""
        watched = self._watched.get(gpu_id)
        if watched is None:
            return None
        watched.errors = [(at, text) for at, text in watched.errors if now - at < ERROR_SECONDS]
        if not watched.errors and now - self._since < ERROR_SECONDS:
            return None
        return tuple(text for _, text in watched.errors)

    def _see_use(self, watched: _Watched, at: float, holders: tuple[str, ...], utilization: float | None) -> None:
        changed_hands = watched.holders is not None and watched.holders != holders
        watched.holders, watched.tells_use = holders, utilization is not None
        if not holders:
            watched.unused_since = None
        elif changed_hands or watched.unused_since is None or (utilization is not None and utilization >= IDLE_BELOW):
            watched.unused_since = at

    def _see_errors(
        self, watched: _Watched, at: float, xids: tuple[int, ...], ecc: int | None, remap_failed: bool | None
    ) -> None:
        found = [f"XID {code}" for code in xids]
        if ecc is not None:
            # Counted since the driver was loaded: what was there at the first look is old news.
            if watched.ecc_uncorrected is not None and ecc > watched.ecc_uncorrected:
                found.append(f"{ecc - watched.ecc_uncorrected} uncorrectable memory errors")
            watched.ecc_uncorrected = ecc
        if remap_failed is not None:
            if remap_failed and watched.remap_failed is False:
                found.append("a row of its memory could not be remapped")
            watched.remap_failed = remap_failed
        watched.errors = [*watched.errors, *((at, text) for text in found)][-KEPT_ERRORS:]
