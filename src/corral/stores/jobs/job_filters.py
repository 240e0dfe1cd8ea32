"""Filters of job lists as SQL, in a form that databases execute quickest.

A text search without an index must read every name. That is quick if only names are read, or rows in their physical
order: `needs_scan` decides when, and `unindexed` prevents databases from walking an index instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Text, and_, cast, func, literal, literal_column, not_, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from corral.control.records import JobFilter
from corral.core.model import CLUSTER_LABEL, JobState
from corral.stores.database.row_codec import to_json
from corral.stores.schema.tables import HAS_SEARCH_TEXT, PlainText, attempt_rows, job_rows, node_rows

#: The columns of jobs, or of some jobs that were selected before.
Columns = ReadOnlyColumnCollection[str, Any]
#: Columns that `job_conditions` reads of selected jobs; those that also read others have no filter by `is_near`.
NEAR_COLUMNS = ("id", "name", "user_name", "kind", "state", "queue", "priority", "created_at", "search_text")

#: Appended to a prefix, sorts after every name with that prefix.
_LAST = "\U0010ffff"
#: Maximum number of digits of a job's number.
MAX_DIGITS = 12
#: Texts that can be a part of an id. Only these are searched in ids, because formatting every id takes half of the
#: time.
_PART_OF_ID = re.compile(r"j?-?[0-9]*")


def job_conditions(where: JobFilter, jobs: Columns = job_rows.c) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if where.states:
        conditions.append(jobs.state.in_([state.value for state in where.states]))
    if where.kinds:
        conditions.append(jobs.kind.in_([kind.value for kind in where.kinds]))
    if where.user is not None:
        conditions.append(jobs.user_name == where.user)
    if where.users:
        conditions.append(jobs.user_name.in_(where.users))
    if where.queue is not None:
        conditions.append(jobs.queue == where.queue)
    if where.name_contains:
        conditions.append(contains(jobs.name, where.name_contains))
    if where.name_prefix:
        conditions += _begins_with(where.name_prefix, jobs)
    if where.id_prefix:
        conditions.append(or_(*(job_rows.c.id.between(*span) for span in _numbers_from(where.id_prefix))))
    if where.text:
        conditions.append(_has_text(where.text, jobs))
    if where.since is not None:
        conditions.append(jobs.created_at >= where.since)
    if where.until is not None:
        conditions.append(jobs.created_at < where.until)
    if where.array is not None:
        conditions += _is_of_array(where.array)
    if where.cluster is not None:
        conditions.append(_is_of_cluster(where.cluster, where.cluster_models))
    return conditions


def needs_scan(where: JobFilter) -> bool:
    """Whether matches may be rare in the whole table. Databases expect to find matches soon when they read in the order
    of an index, and then look up all rows one by one; reading in physical order and sorting takes a third of that
    time."""
    has_time = where.since is not None or where.until is not None
    return bool(where.text or where.name_contains or where.array or where.cluster or has_time)


def is_near(where: JobFilter, *, by_id: bool) -> bool:
    """Whether a page of these jobs is looked for among the first jobs of the list before all jobs of the filter are
    sorted. In the order of ids only beginnings of names have to be sorted. One user's jobs are few."""
    if where.array or where.cluster or where.id_prefix or where.user is not None or where.users:
        return False
    if by_id:
        return bool(where.name_prefix)
    return needs_scan(where) or bool(where.states or where.kinds or where.queue or where.name_prefix)


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The same values in the same order, as an expression that no index matches."""
    return column.concat("") if isinstance(column.type, PlainText) else column + 0


def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Case-insensitive for the letters from A to Z."""
    return _Contains(column, literal(f"%{_MARKS.sub(_mark, text)}%", PlainText()))


class _Contains(FunctionElement[bool]):
    """SQLite's LIKE is case-insensitive; lower() on all names would take three times as long."""

    name = "contains"
    type = Boolean()
    inherit_cache = True


@compiles(_Contains, "sqlite")
def _like(element: _Contains, compiler: SQLCompiler, **options: Any) -> str:
    column, pattern = element.clauses
    return f"({compiler.process(column, **options)} LIKE {compiler.process(pattern, **options)} ESCAPE '/')"


@compiles(_Contains, "postgresql")
def _ilike(element: _Contains, compiler: SQLCompiler, **options: Any) -> str:
    column, pattern = element.clauses
    return f"({compiler.process(column, **options)} ILIKE {compiler.process(pattern, **options)} ESCAPE '/')"


#: Special characters of LIKE.
_MARKS = re.compile(r"[%_/]")


def _mark(found: re.Match[str]) -> str:
    return f"/{found[0]}"


def _begins_with(prefix: str, jobs: Columns = job_rows.c) -> list[ColumnElement[bool]]:
    return [jobs.name >= prefix, jobs.name < prefix + _LAST]


def _numbers_from(digits: str) -> list[tuple[int, int]]:
    """The ranges of numbers that begin with these digits. For 12: 12 itself, 120 to 129, 1200 to 1299 and so on."""
    first = int(digits)
    return [(first * 10**more, (first + 1) * 10**more - 1) for more in range(MAX_DIGITS - len(digits) + 1)]


def _has_text(text: str, jobs: Columns) -> ColumnElement[bool]:
    places: list[ColumnElement[str]] = [jobs.name, jobs.user_name]
    if _PART_OF_ID.fullmatch(text.lower()):
        places.append(literal("j-") + cast(jobs.id, Text))
    if jobs is not job_rows.c:
        return or_(*(contains(place, text) for place in [*places, jobs.search_text]))
    described = select(job_rows.c.id).where(literal_column(HAS_SEARCH_TEXT), contains(job_rows.c.search_text, text))
    return or_(*(contains(place, text) for place in places), job_rows.c.id.in_(described.correlate(None)))


def _is_of_array(array: str) -> list[ColumnElement[bool]]:
    """Members of an array by name and by the array's label: a clone has another name, another job of the name no
    label."""
    index = func.substr(job_rows.c.name, len(array) + 2)
    made = to_json({"array_name": array})[1:-1]
    return [
        *_begins_with(f"{array}-"),
        func.ltrim(index, "0123456789") == "",
        job_rows.c.spec.contains(made, autoescape=True),
    ]


def _is_of_cluster(cluster: str, models: Sequence[str]) -> ColumnElement[bool]:
    """Whether a job is of the cluster: by the node of its last attempt; for a job without attempts by the label that
    binds it to a cluster, if any, and by its requested models. No gang spans two clusters, so its first node is
    sufficient.
    """
    there = select(node_rows.c.id).where(node_rows.c.cluster == cluster)
    ran = select(attempt_rows.c.job_id).where(
        attempt_rows.c.job_id == job_rows.c.id,
        attempt_rows.c.number == job_rows.c.attempt,
        _FirstNode(attempt_rows.c.allocation).in_(there),
    )
    waits = or_(job_rows.c.attempt == 0, job_rows.c.state == JobState.QUEUED.value)
    bound = job_rows.c.body.contains(to_json([CLUSTER_LABEL, cluster]), autoescape=True)
    is_free = not_(job_rows.c.body.contains(to_json([CLUSTER_LABEL])[:-1] + ",", autoescape=True))
    named = [job_rows.c.body.contains(to_json(model), autoescape=True) for model in models]
    suits = or_(not_(job_rows.c.body.contains('"models":[', autoescape=True)), *named)
    return or_(and_(waits, or_(bound, is_free), suits), and_(not_(waits), ran.exists()))


class _FirstNode(FunctionElement[str]):
    """The first node of an allocation, which is JSON."""

    name = "first_node"
    type = PlainText()
    inherit_cache = True


@compiles(_FirstNode, "sqlite")
def _extracted(element: _FirstNode, compiler: SQLCompiler, **options: Any) -> str:
    (column,) = element.clauses
    return f"json_extract({compiler.process(column, **options)}, '$.grants[0].node')"


@compiles(_FirstNode, "postgresql")
def _looked_up(element: _FirstNode, compiler: SQLCompiler, **options: Any) -> str:
    (column,) = element.clauses
    return f"(CAST({compiler.process(column, **options)} AS json) #>> '{{grants,0,node}}')"
