"""One user's jobs in a line that ask for the same, and how many of them go before a rank."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

from corral.core.scheduling.ordering import SortKey

#: Orders a job among its user's own, and names it; then the number of its shape, and how long it holds what it gets.
Entry = tuple[SortKey, str, int, float]


class Kin:
    """One user's jobs that differ in time alone."""

    __slots__ = ("entries", "lengths")

    def __init__(self) -> None:
        #: in the user's own order
        self.entries: list[Entry] = []
        #: how long each would hold what it gets, shortest first
        self.lengths: list[float] = []

    def add(self, entry: Entry) -> None:
        insort(self.entries, entry)
        insort(self.lengths, entry[3])

    def remove(self, entry: Entry) -> bool:
        """Whether it was there."""
        if not take_out(self.entries, entry):
            return False
        del self.lengths[bisect_left(self.lengths, entry[3])]
        return True


def take_out(entries: list[Entry], entry: Entry) -> bool:
    place = bisect_left(entries, entry)
    if place == len(entries) or entries[place] != entry:
        return False
    del entries[place]
    return True


def own_orders(kin: Kin) -> Iterator[float | int]:
    """The places that a user has given to some of these jobs, each once, first to last."""
    at = 0
    while at < len(kin.entries):
        order = kin.entries[at][0][0]
        yield order
        at = bisect_left(kin.entries, ((order + 1,),), at)


def count_ranked_before(kins: Mapping[int, Kin], rank: SortKey, *, by_own_order: bool) -> int:
    """How many of a user's jobs have their turn before a rank. Of those that have the same place in the user's own
    order the rank decides; one that does not go before it holds up all that the user has put behind it."""
    if not by_own_order:
        return sum(bisect_left(kin.entries, (rank,)) for kin in kins.values())
    count = 0
    for order in sorted({order for kin in kins.values() for order in own_orders(kin)}):
        has_all_before = True
        for kin in kins.values():
            since, until = bisect_left(kin.entries, ((order,),)), bisect_left(kin.entries, ((order + 1,),))
            place = bisect_left(kin.entries, ((order, *rank),), since, until)
            count += place - since
            has_all_before = has_all_before and place == until
        if not has_all_before:
            break
    return count
