"""Search over all types of objects by a part of an id or name.

Decides what a caller finds: no more than the lists of the same things would show them. What matches best goes first:
the very name, then what begins with the text, then what contains it. Every type of thing gets its share of the places,
so that a thousand jobs do not hide the one queue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from corral.control.fleet.node_views import GpuView
from corral.control.jobs import images
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction
from corral.control.records import Function, JobFilter, JobRecord
from corral.control.storage import volumes
from corral.control.workbenches.workbenches import is_workbench
from corral.core.counts import counted
from corral.core.model import Node

MAX_FOUND = 50
#: Older reports are found in their list.
MAX_REPORTS = 200

_ID = re.compile(r"(?:j-)?([1-9][0-9]{0,11})")


class Type(StrEnum):
    """The type of a match, in the order in which matches are shown."""

    JOB = "job"
    WORKBENCH = "workbench"
    USER = "user"
    NODE = "node"
    GPU = "gpu"
    QUEUE = "queue"
    POOL = "pool"
    GROUP = "group"
    PACKAGE = "package"
    FLAVOR = "flavor"
    IMAGE = "image"
    VOLUME = "volume"
    ALERT_RULE = "alert-rule"
    REPORT = "report"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    type: Type
    #: the object's id in the API; `owner/name` for the image of a user
    id: str
    title: str
    #: a short text that distinguishes it from others of the same name
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    #: 0: the very name. 1: it begins so. 2: it contains it.
    rank: int
    found: Found


def search(tx: Transaction, caller: Caller, text: str, fleet: Sequence[Sequence[Match]], limit: int) -> list[Found]:
    """`fleet` is what `search_fleet` found: the store would have to read every GPU."""
    wanted = text.casefold()
    lists = [_best(_matches(wanted, things)) for things in _small_things(tx, caller)]
    return _shared_out([*_jobs(tx, caller, text, limit), *fleet, *lists], limit)


def search_fleet(state: State, text: str) -> list[list[Match]]:
    """Nodes, and GPUs."""
    fleet = state.fleet()
    nodes, gpus = (names.best(text, MAX_FOUND) for names in fleet.searched_names())
    of_nodes = [(rank, view.node) for rank, name in nodes if (view := fleet.view(name)) is not None]
    of_gpus = [(rank, gpu) for rank, name in gpus if (gpu := fleet.gpu(name)) is not None]
    return [
        [Match(rank=rank, found=_node(node)) for rank, node in of_nodes],
        [Match(rank=rank, found=_gpu(gpu)) for rank, gpu in of_gpus],
    ]


def _node(node: Node) -> Found:
    detail = f"{node.state.value}, {counted(len(node.gpus), 'GPU')}"
    return Found(type=Type.NODE, id=node.id, title=node.id, detail=detail)


def _gpu(view: GpuView) -> Found:
    gpu = view.gpu
    return Found(type=Type.GPU, id=gpu.id, title=gpu.id, detail=f"{gpu.model} {gpu.index} of {view.node}")


# ------------------------------------------------------------------------------------------------ jobs


def _jobs(tx: Transaction, caller: Caller, text: str, limit: int) -> list[list[Match]]:
    """Jobs and workbenches, each newest first within what matches equally well."""
    user = None if caller.may(Function.SEE_OTHERS_JOBS) else caller.name
    queries = [JobFilter(user=user, name_prefix=text)]
    number = _ID.fullmatch(text)
    if number is not None:
        queries.insert(0, JobFilter(user=user, id_prefix=number[1]))
    if not text.startswith("j-"):
        # Every name has to be looked at for this; who types an id does not mean a part of a name.
        queries.append(JobFilter(user=user, name_contains=text))
    records: dict[str, JobRecord] = {}
    for where in queries:
        page = tx.jobs.page(where, sort="-id", cursor=None, limit=limit)
        records.update((record.job.id, record) for record in page.items)
    newest = sorted(records.values(), key=lambda record: -record.job.serial)
    found = _best(_matches(text.casefold(), [(_job(record, caller), ()) for record in newest]))
    return [[match for match in found if match.found.type is of_type] for of_type in (Type.JOB, Type.WORKBENCH)]


def _job(record: JobRecord, caller: Caller) -> Found:
    job = record.job
    is_theirs = is_workbench(record) and (caller.is_operator or caller.name == job.user)
    return Found(
        type=Type.WORKBENCH if is_theirs else Type.JOB,
        id=job.id,
        title=job.name,
        detail=f"{job.state.value}, {job.user}",
    )


# ------------------------------------------------------------------------------------------------ everything else

#: A result, and the other texts that it is found by.
_Findable = tuple[Found, Sequence[str]]


def _small_things(tx: Transaction, caller: Caller) -> Iterator[Iterable[_Findable]]:
    """List by list, what the caller may see."""
    yield [(Found(type=Type.QUEUE, id=queue.name, title=queue.name), ()) for queue in tx.fleet.queues()]
    yield [(_named(Type.POOL, pool.name, pool.description), ()) for pool in tx.fleet.pools()]
    yield [(_named(Type.PACKAGE, package.name, package.description), ()) for package in tx.catalog.packages()]
    yield [(_named(Type.FLAVOR, flavor.name, flavor.description), ()) for flavor in tx.catalog.flavors()]
    yield [
        (
            Found(
                type=Type.IMAGE,
                id=f"{image.owner}/{image.name}" if image.owner else image.name,
                title=image.name,
                detail=image.address,
            ),
            (),
        )
        for image in images.visible(tx, caller)
    ]
    yield [
        (
            Found(type=Type.VOLUME, id=volume.id, title=volume.name, detail=f"{volume.type.value}, {volume.owner}"),
            (f"{volume.owner}/{volume.name}",),
        )
        for volume in volumes.visible(tx, caller)
    ]
    if caller.is_operator:
        yield from _operators_things(tx)


def _operators_things(tx: Transaction) -> Iterator[Iterable[_Findable]]:
    yield [
        (Found(type=Type.USER, id=user.name, title=user.display_name or user.name, detail=user.email), (user.email,))
        for user in tx.people.users()
    ]
    yield [(_named(Type.GROUP, group.name, group.description), ()) for group in tx.people.groups()]
    yield [(_named(Type.ALERT_RULE, rule.name, rule.description), ()) for rule in tx.alerts.rules()]
    reports = tx.reports.page(cursor=None, limit=MAX_REPORTS)
    yield [
        (Found(type=Type.REPORT, id=report.id, title=report.title, detail=report.state.value), ())
        for report in reports.items
    ]


def _named(of_type: Type, name: str, description: str) -> Found:
    return Found(type=of_type, id=name, title=name, detail=description[:120])


# ------------------------------------------------------------------------------------------------ order


def _matches(wanted: str, things: Iterable[_Findable]) -> Iterator[Match]:
    for found, others in things:
        texts = [text.casefold() for text in (found.id, found.title, *others)]
        if wanted in texts:
            yield Match(rank=0, found=found)
        elif any(text.startswith(wanted) for text in texts):
            yield Match(rank=1, found=found)
        elif any(wanted in text for text in texts):
            yield Match(rank=2, found=found)


def _best(matches: Iterable[Match]) -> list[Match]:
    """The best matches first; equal ones keep their order."""
    return sorted(matches, key=lambda match: match.rank)[:MAX_FOUND]


def _shared_out(lists: Sequence[Sequence[Match]], limit: int) -> list[Found]:
    """Takes one match of each list in turn until the limit is reached; then matches that begin with the text come
    first.
    """
    taken: list[Match] = []
    for place in range(limit):
        taken += [matches[place] for matches in lists if place < len(matches)]
        if len(taken) >= limit:
            break
    order = list(Type)
    taken = sorted(taken[:limit], key=lambda match: (match.rank, order.index(match.found.type)))
    return [match.found for match in taken]
