"""One user's jobs of the same shape in a line, and how many of them go before a rank."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

from corral.core.scheduling.ordering import SortKey

#: The sort key of a job among its user's jobs, its id, the number of its shape, and how long it holds its resources.
Entry = tuple[SortKey, str, int, float]


class SameShape:
    """One user's jobs of the same shape: they differ at most in how long they hold their resources."""

    __slots__ = ("entries", "lengths")

    def __init__(self) -> None:
        #: in the user's own order
        self.entries: list[Entry] = []
        #: how long each job holds its resources, shortest first
        self.lengths: list[float] = []

    def add(self, entry: Entry) -> None:
        insort(self.entries, entry)
        insort(self.lengths, entry[3])

    def remove(self, entry: Entry) -> bool:
        """Whether the entry was there."""
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


def own_orders(group: SameShape) -> Iterator[float | int]:
    """The distinct positions that the user has given to these jobs, ascending."""
    at = 0
    while at < len(group.entries):
        order = group.entries[at][0][0]
        yield order
        at = bisect_left(group.entries, ((order + 1,),), at)


def count_ranked_before(groups: Mapping[int, SameShape], rank: SortKey, *, by_own_order: bool) -> int:
    """How many of a user's jobs go before a rank. Among jobs with the same position in the user's own order the rank
    decides; a job that does not go before it blocks all jobs that the user has put behind it."""
    if not by_own_order:
        return sum(bisect_left(group.entries, (rank,)) for group in groups.values())
    count = 0
    for order in sorted({order for group in groups.values() for order in own_orders(group)}):
        has_all_before = True
        for group in groups.values():
            since, until = bisect_left(group.entries, ((order,),)), bisect_left(group.entries, ((order + 1,),))
            place = bisect_left(group.entries, ((order, *rank),), since, until)
            count += place - since
            has_all_before = has_all_before and place == until
        if not has_all_before:
            break
    return count
