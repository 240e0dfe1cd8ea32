"""GPUs of a node that are allocated together: those with fast links to each other (NVLink, the same NUMA node).

A job of several GPUs gets them from one link group if one has enough free, otherwise from the fewest groups. Of the
groups with enough free GPUs the one with the fewest is used, so that small jobs do not break up whole groups. A GPU
without a known link group is linked to no other; on a node without known links the lowest indexes go first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence


def linked(free: Sequence[str], links: Mapping[str, str], count: int) -> tuple[str, ...]:
    """`count` of the free GPUs, in their order. There must be as many."""
    if not links or count >= len(free):
        return tuple(free[:count])
    groups: dict[str, list[str]] = {}
    for gpu in free:
        groups.setdefault(links.get(gpu, gpu), []).append(gpu)
    chosen: set[str] = set()
    while (missing := count - len(chosen)) > 0:
        holding = [name for name, gpus in groups.items() if len(gpus) >= missing]
        # The largest groups until the rest fits in one: no other choice uses fewer groups.
        name = (
            min(holding, key=lambda name: len(groups[name])) if holding else max(groups, key=lambda n: len(groups[n]))
        )
        chosen.update(groups.pop(name)[:missing])
    return tuple(gpu for gpu in free if gpu in chosen)


def linked_to(held: Collection[str], idle: Sequence[str], links: Mapping[str, str], count: int) -> list[str]:
    """Up to `count` of the idle GPUs for a job that holds others: those linked to its own first."""
    if not links or count >= len(idle):
        return list(idle[: max(0, count)])
    own = {links[gpu] for gpu in held if gpu in links}
    near = [gpu for gpu in idle if links.get(gpu) in own]
    if len(near) >= count:
        return near[: max(0, count)]
    far = [gpu for gpu in idle if links.get(gpu) not in own]
    return [*near, *linked(far, links, count - len(near))]


def free_in_groups(free: Iterable[str], links: Mapping[str, str]) -> tuple[int, ...]:
    """The distinct numbers of free GPUs per link group, ascending; empty without known links."""
    if not links:
        return ()
    return tuple(sorted({*Counter(links.get(gpu, gpu) for gpu in free).values()}))
