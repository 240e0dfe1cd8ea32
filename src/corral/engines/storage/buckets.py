"""Buckets as directories: mounted if FUSE is available, else fetched before the start."""

from __future__ import annotations

import os
from typing import Any

from corral.core.os_errors import placed_reason
from corral.engines.attempts.claims import CLAIM
from corral.engines.attempts.instance_messages import StorageSpec
from corral.engines.storage.provider import CannotProvide, Surroundings
from corral.objects.access import NotReachable, ObjectAccess, look
from corral.objects.bucket import Bucket, Replaced
from corral.objects.bucket_mounts import CannotMount, MountOrder, directory_of, ensure_mounted, fuse_problem
from corral.objects.cache import BlockCache
from corral.objects.prefetch import TooLarge, fetch_tree, prefetch

_GIB = 1 << 30


class BucketProvider:
    """See `StorageProvider`."""

    def provide(self, spec: StorageSpec, around: Surroundings) -> str:
        access = ObjectAccess.from_dict(spec["access"])
        problem = "switched off" if around.places["without_fuse"] else fuse_problem()
        if problem and not spec["read_only"]:
            raise CannotProvide(f"it can be written to only through FUSE, and here {problem}")
        try:
            # Checked first: a missing bucket would appear as an empty directory, or cause errors in the job.
            look(access, limit=1)
            if problem:
                return self._fetched(spec, access, around, problem)
            if spec["prefetch"]:
                self._prefetched(spec, access, around)
            return self._mounted(spec, access, around)
        except (NotReachable, Replaced, TooLarge, CannotMount) as error:
            raise CannotProvide(str(error)) from error
        except OSError as error:
            raise CannotProvide(placed_reason(error)) from error

    def _mounted(self, spec: StorageSpec, access: ObjectAccess, around: Surroundings) -> str:
        places: Any = around.places
        writable = not spec["read_only"]
        order = MountOrder(
            directory=directory_of(places["objects"], access, writable=writable),
            access=access.to_dict(),
            writable=writable,
            cache=places["cache"],
            cache_bytes=places["cache_bytes"],
            linger_seconds=places["linger_seconds"],
        )
        user = f"{around.attempt_id}-{os.path.basename(around.rank_dir)}"
        return ensure_mounted(order, user=user, lock_path=os.path.join(around.rank_dir, CLAIM))

    def _prefetched(self, spec: StorageSpec, access: ObjectAccess, around: Surroundings) -> None:
        around.say(f"fetching {spec['name']} before the start")
        fetched = prefetch(_bucket(access, around), lambda text: around.progress(f"{spec['name']}: {text}"))
        around.say(f"{spec['name']} is here: {fetched / _GIB:.2f} GiB")

    def _fetched(self, spec: StorageSpec, access: ObjectAccess, around: Surroundings, problem: str) -> str:
        around.say(f"{spec['name']} cannot be mounted here ({problem}): all its files are fetched before the start")
        target = os.path.join(around.scratch, f"fetched-{spec['link']}")
        os.makedirs(around.scratch, mode=0o700, exist_ok=True)
        fetched = fetch_tree(_bucket(access, around), target, lambda text: around.progress(f"{spec['name']}: {text}"))
        around.say(f"{spec['name']} is here: {fetched / _GIB:.2f} GiB")
        return target


def _bucket(access: ObjectAccess, around: Surroundings) -> Bucket:
    return Bucket(access, BlockCache(around.places["cache"], around.places["cache_bytes"]))
