"""The holder of a store: the home that may write to it, and the directories of its engines.

Two servers on one store would run every job twice. A server in another home is therefore refused unless an operator
says that it takes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The directory of an engine's attempts. The same path on another machine is another place."""

    id: str
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreHolder:
    """A home, as the store knows it."""

    #: random, kept in the home; and the inode of the file that it is kept in, by which a copy is distinguished from the
    #: original
    home: str
    inode: int
    path: str
    host: str
    #: boot of the running system: processes of another boot cannot be seen, or are gone
    boot_id: str = ""
    #: since when it has the store, and when its server was last started
    since: float = 0.0
    started_at: float = 0.0
    #: by the names of clusters
    places: Mapping[str, Place] = field(default_factory=dict)

    def is_same(self, other: StoreHolder) -> bool:
        """Whether both are one home: neither another one nor a copy."""
        return (self.home, self.inode) == (other.home, other.inode)


@dataclass(frozen=True, kw_only=True, slots=True)
class Leadership:
    """The identity and term of a server that has taken over a store."""

    #: grows with every server that takes over; engines refuse orders of an older one
    term: int
    #: random, of the store: jobs have it in their environment, so that they can be found
    installation: str


#: For engines without a leader, as in a test: every command is accepted.
NO_LEADERSHIP = Leadership(term=0, installation="")


class StoreHeld(Exception):
    """Another home owns this store. Nothing was written."""

    def __init__(self, holder: StoreHolder) -> None:
        super().__init__(f"the store belongs to the home {holder.path} on {holder.host}")
        self.holder = holder
