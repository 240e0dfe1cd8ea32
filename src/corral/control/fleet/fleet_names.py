"""Names of nodes and GPUs in one text: a search for a part of a name is a pass over the text, not over the names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

#: Stands before and behind each name.
_BORDER = "\n"


class NameText:
    """Names, compared without regard to case."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        folded = [name.casefold().replace(_BORDER, " ") for name in names]
        self._text = _BORDER.join(["", *folded, ""])
        #: where the border before each name is
        self._begins = list(accumulate((len(name) + 1 for name in folded), initial=0))

    def best(self, text: str, limit: int) -> list[tuple[int, str]]:
        """Names with their rank, best first: 0 for the very name, 1 if it begins so, 2 if it contains the text."""
        wanted = text.casefold()
        ranks: dict[int, int] = {}
        if not wanted or _BORDER in wanted:
            return []
        for rank, pattern in enumerate((f"{_BORDER}{wanted}{_BORDER}", f"{_BORDER}{wanted}", wanted)):
            at = self._text.find(pattern)
            while at >= 0 and len(ranks) < limit:
                place = bisect_right(self._begins, at) - 1
                ranks.setdefault(place, rank)
                at = self._text.find(pattern, self._begins[place + 1])
        return [(rank, self._names[place]) for place, rank in ranks.items()]
