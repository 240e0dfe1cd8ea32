"""The images of this node that were pulled with a user's login to a registry, and are not free for every user.

The node keeps images for all users. An image that was pulled with a login is recorded by its id, so that no other
name of the image avoids the check; another user has to pull it, too, and the registry decides. Images that the operator
put on the node, and images that a registry gave without a login, are free for all users.

    <root>/images/private-<id>     pulled with a login
    <root>/images/public-<id>      a registry gave it without a login
    <root>/images/pending-<pid>    a pull with a login is in progress: the image's address, and its id before

Supervisors, which are forked from the spawner, import this module, so it uses the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator

DIRECTORY = "images"
_ID = re.compile(r"[0-9a-f]{12,64}")
_PENDING = "pending-"


class ImageRights:
    """`id_of(address)` returns the id of an image of the node; None if the node has no image of that name."""

    def __init__(self, directory: str, id_of: Callable[[str], str | None]) -> None:
        self._directory = directory
        self._id_of = id_of
        os.makedirs(directory, mode=0o700, exist_ok=True)

    def is_open(self, image_id: str) -> bool:
        """Whether all users may use it without a pull."""
        if self._has("public", image_id):
            return not self._has("private", image_id)
        # Pulls in progress first: a pull that ends in between has recorded its image by then.
        return not self._is_pulling() and not self._has("private", image_id)

    def open_to_all(self, image_id: str) -> None:
        """A registry gives the image without a login. An image that was pulled with a login stays private: another
        registry could claim to have it."""
        if not self._has("private", image_id):
            self._note("public", image_id)

    @contextlib.contextmanager
    def pulling(self, address: str) -> Iterator[None]:
        """While an image is pulled with a login. An image that is new to the node afterwards is recorded as private."""
        before = self._id_of(address) or ""
        pending = os.path.join(self._directory, f"{_PENDING}{os.getpid()}")
        with open(pending, "w", encoding="utf-8") as target:
            target.write(f"{address}\n{before}\n")
        try:
            yield
        finally:
            # Also after a pull that failed or was stopped: the image may be on the node in spite of that.
            self._settle(pending, address, before)

    def _settle(self, pending: str, address: str, before: str) -> None:
        after = self._id_of(address)
        if after is not None and after != before:
            self._note("private", after)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(pending)

    def _is_pulling(self) -> bool:
        found = False
        for name in os.listdir(self._directory):
            if not name.startswith(_PENDING):
                continue
            path = os.path.join(self._directory, name)
            if os.path.exists(f"/proc/{name.removeprefix(_PENDING)}"):
                found = True
                continue
            # Its supervisor died: an image that it may have pulled is private.
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as source:
                address, before = (*source.read().splitlines(), "", "")[:2]
                self._settle(path, address, before)
        return found

    def _has(self, kind: str, image_id: str) -> bool:
        return os.path.exists(self._path(kind, image_id))

    def _note(self, kind: str, image_id: str) -> None:
        os.close(os.open(self._path(kind, image_id), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _path(self, kind: str, image_id: str) -> str:
        return os.path.join(self._directory, f"{kind}-{image_id}")


def plain_id(answer: str | None) -> str | None:
    """The id in a runtime's answer, without the name of its hash function."""
    found = (answer or "").strip().rpartition(":")[2]
    return found if _ID.fullmatch(found) else None
