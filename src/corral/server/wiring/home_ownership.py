"""Identity of the server's home, ownership of the store, and the directories of its engines.

A store belongs to one home. A server in another home, or in a copy, is refused, because both would run the same jobs;
with `--take-over` it becomes the owner. It then uses the directories of the former home's engines if it can reach them,
so that jobs which run there are found again, and reports what it cannot reach.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from corral.control.ports import Place, StoreHolder
from corral.engines.attempts.environment import INSTALLATION_VARIABLE, RUN_DIR_VARIABLE
from corral.engines.attempts.processes import boot_id, processes_with_env
from corral.server.schemas.base import rfc3339
from corral.server.settings.sections.cluster_sections import ClusterSettings
from corral.server.settings.settings import Settings
from corral.server.wiring.home_lock import holder_of

_HOME_ID = "home-id"
_PLACE_ID = "place-id"
_ENGINE_ID = "engine-id"


class RunningElsewhere(Exception):
    """Jobs of this store run on this machine in a directory that this server does not manage."""


def claim_of(home: Path, now: float) -> StoreHolder:
    """The record of this home for the store."""
    home_id, inode = _identity(home, _HOME_ID)
    return StoreHolder(
        home=home_id,
        inode=inode,
        path=str(home.resolve()),
        host=socket.gethostname(),
        boot_id=boot_id(),
        started_at=now,
    )


def engine_roots(settings: Settings, known: StoreHolder | None) -> dict[str, Path]:
    """The directory of each cluster's engine: in this home, or the former one according to the store."""
    return {cluster.name: _root_of(settings, cluster, known) for cluster in settings.cluster}


def with_places(claim: StoreHolder, roots: Mapping[str, Path]) -> StoreHolder:
    """The claim with the directories of the engines, which are created if they are missing."""
    places = {}
    for name, root in roots.items():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        places[name] = Place(id=_identity(root, _PLACE_ID)[0], path=str(root.resolve()))
    return replace(claim, places=places)


def check_nothing_runs_elsewhere(installation: str, roots: Iterable[Path]) -> None:
    """Raises RunningElsewhere. Jobs on other machines cannot be seen."""
    if not installation:
        return
    known = [str(root.resolve()) + os.sep for root in roots]
    found = {
        env[RUN_DIR_VARIABLE]: pid
        for pid, env in processes_with_env(INSTALLATION_VARIABLE, installation, RUN_DIR_VARIABLE)
        if not env[RUN_DIR_VARIABLE].startswith(tuple(known))
    }
    if found:
        shown = [f"process {pid} in {directory}" for directory, pid in sorted(found.items())[:8]]
        more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        raise RunningElsewhere(
            f"jobs of this store run on this machine in directories that this server does not manage: "
            f"{'; '.join(shown)}{more}. It would start them a second time. "
            "End them, or start the server in the home that they belong to."
        )


def held_text(holder: StoreHolder, home: Path) -> str:
    """Why a server may not start here, and how an operator can fix it."""
    whose = f"the home {holder.path} on {holder.host}"
    if holder.path == str(home.resolve()) and holder.host == socket.gethostname():
        whose = f"another home that was at {holder.path} before: this one is new, or a copy of it that was put back"
    pid = holder_of(Path(holder.path)) if holder.boot_id == boot_id() and holder.path != str(home.resolve()) else ""
    alive = f" Its server runs now (process {pid})." if pid else ""
    return (
        f"the store belongs to {whose}, since {rfc3339(holder.since)}; its server was last started "
        f"{rfc3339(holder.started_at)}.{alive} Two servers on one store would run every job twice. Start the server "
        "with that home; or make sure that nothing of it runs there any more, and start this one once with --take-over."
    )


def restored(roots: Mapping[str, Path]) -> frozenset[str]:
    """The clusters whose engines know by their ids, which a backup has, which jobs there are theirs. To be asked before
    an engine is opened: a new one makes an id of its own."""
    return frozenset(name for name, root in roots.items() if (root / _ENGINE_ID).exists())


def unseen(former: StoreHolder | None, claim: StoreHolder, known: Collection[str] = ()) -> list[str]:
    """Messages about jobs and files of the former home that a server cannot reach after a take-over. `known` are
    clusters whose jobs are found without that."""
    if former is None or former.is_same(claim):
        return []
    reached = {place.id for place in claim.places.values()}
    messages = [
        f"{place.path} of cluster {name} on {former.host} cannot be reached from here: "
        + (
            "jobs that run there are taken up again, without their output of before"
            if name in known
            else "jobs that ran there count as lost, and start again"
        )
        for name, place in former.places.items()
        if place.id not in reached
    ]
    if former.boot_id != claim.boot_id and former.host != claim.host:
        messages.append(
            f"processes on {former.host} cannot be seen from {claim.host}: make sure that none is left there"
        )
    if former.path != claim.path:
        messages.append(f"the directories of jobs stay in {former.path}/jobs: what jobs saved is not found here")
    return messages


def _root_of(settings: Settings, cluster: ClusterSettings, known: StoreHolder | None) -> Path:
    section = getattr(cluster, cluster.engine, None)
    if configured := getattr(section, "root", None):
        return Path(configured)
    # The local engine has no section in the cluster: there is one for the whole server.
    own = settings.home / cluster.engine if section is None else settings.home / cluster.engine / cluster.name
    place = known.places.get(cluster.name) if known is not None else None
    if place is None or place.path == str(own.resolve()):
        return own
    try:
        is_there = (Path(place.path) / _PLACE_ID).read_text(encoding="ascii").strip() == place.id
    except (OSError, ValueError):
        is_there = False
    return Path(place.path) if is_there else own


def _identity(directory: Path, name: str) -> tuple[str, int]:
    """A random id, stored in a file of a directory, and the inode of that file."""
    path = directory / name
    if not path.exists():
        draft = directory / f".{name}.{secrets.token_hex(4)}"
        draft.touch(mode=0o600)
        draft.write_text(f"{secrets.token_hex(16)}\n", encoding="ascii")
        try:
            # A hard link appears atomically, and never replaces an existing file.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii").strip(), path.stat().st_ino
