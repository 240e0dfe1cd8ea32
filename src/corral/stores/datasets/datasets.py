"""Datasets: where they are kept, their versions and tags, who used them, and long work on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, and_, delete, insert, literal_column, select

from corral.control.ports import NameTaken
from corral.control.records import (
    DatasetRecord,
    DatasetTargetRecord,
    DatasetUse,
    OperationKind,
    OperationRecord,
    OperationState,
    Page,
    Share,
    TagRecord,
    VersionRecord,
)
from corral.core.snapshot.codec import from_plain, to_plain
from corral.stores.database import row_codec
from corral.stores.database.cursors import Position, Sort, check_limit, decode_cursor, encode_cursor
from corral.stores.database.statements import CHUNK, count_up, insert_into, replace_rows
from corral.stores.schema.dataset_tables import (
    NOT_OVER,
    dataset_errand_rows,
    dataset_rows,
    dataset_tag_rows,
    dataset_target_rows,
    dataset_use_rows,
    dataset_version_rows,
)
from corral.stores.schema.tables import NOT_ENDED, job_rows

PREFIX, OPERATION_PREFIX = "d-", "e-"
_NEWEST_FIRST = Sort(field="id", descending=True, type=int, id_type=int)
_DATASETS, _VERSIONS, _TAGS = dataset_rows.c, dataset_version_rows.c, dataset_tag_rows.c
_USES, _OPERATIONS = dataset_use_rows.c, dataset_errand_rows.c


class SqlDatasetTable:
    """Implements `corral.control.ports.DatasetTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ---------------------------------------------------------------- targets

    def targets(self) -> list[DatasetTargetRecord]:
        rows = self._connection.execute(select(dataset_target_rows).order_by(dataset_target_rows.c.name))
        return [from_plain(DatasetTargetRecord, {"name": row.name, **row_codec.from_json(row.body)}) for row in rows]

    def save_target(self, target: DatasetTargetRecord) -> None:
        body = {name: value for name, value in to_plain(target).items() if name != "name"}
        replace_rows(self._connection, dataset_target_rows, [{"name": target.name, "body": row_codec.to_json(body)}])

    def delete_target(self, name: str) -> None:
        self._connection.execute(delete(dataset_target_rows).where(dataset_target_rows.c.name == name))

    # ---------------------------------------------------------------- datasets

    def next_id(self) -> str:
        return f"{PREFIX}{count_up(self._connection, 'dataset', 1)}"

    def all(self) -> list[DatasetRecord]:
        rows = self._connection.execute(select(dataset_rows).order_by(_DATASETS.name, _DATASETS.owner))
        return [_dataset_of(row) for row in rows]

    def get(self, dataset_id: str) -> DatasetRecord | None:
        return self._one(_DATASETS.id == _number(dataset_id))

    def find(self, owner: str, name: str) -> DatasetRecord | None:
        return self._one(and_(_DATASETS.owner == owner, _DATASETS.name == name))

    def save(self, dataset: DatasetRecord) -> None:
        other = self.find(dataset.owner, dataset.name)
        if other is not None and other.id != dataset.id:
            raise NameTaken("dataset", dataset.name)
        row = {
            **{column.name: getattr(dataset, column.name) for column in dataset_rows.columns},
            "id": _number(dataset.id),
            "shares": row_codec.to_json([to_plain(share) for share in dataset.shares]),
        }
        replace_rows(self._connection, dataset_rows, [row])

    def delete(self, dataset_id: str) -> None:
        self._connection.execute(delete(dataset_rows).where(_DATASETS.id == _number(dataset_id)))

    def _one(self, where: Any) -> DatasetRecord | None:
        row = self._connection.execute(select(dataset_rows).where(where)).one_or_none()
        return None if row is None else _dataset_of(row)

    # ---------------------------------------------------------------- versions

    def add_versions(self, versions: Sequence[VersionRecord]) -> None:
        if versions:
            rows = [{**asdict(version), "dataset": _number(version.dataset)} for version in versions]
            self._connection.execute(insert(dataset_version_rows), rows)

    def version(self, dataset_id: str, version: str) -> VersionRecord | None:
        where = and_(_VERSIONS.dataset == _number(dataset_id), _VERSIONS.id == version)
        row = self._connection.execute(select(dataset_version_rows).where(where)).one_or_none()
        return None if row is None else _version_of(row)

    def versions_like(self, dataset_id: str, prefix: str, limit: int) -> list[VersionRecord]:
        # As a range, which the primary key answers: what comes after every id that begins so is "prefix" and a letter
        # behind all digits.
        where = and_(_VERSIONS.dataset == _number(dataset_id), _VERSIONS.id >= prefix, _VERSIONS.id < f"{prefix}g")
        return self._versions(where, limit)

    def log(self, dataset_id: str, *, before: int | None, limit: int) -> list[VersionRecord]:
        where = _VERSIONS.dataset == _number(dataset_id)
        return self._versions(where if before is None else and_(where, _VERSIONS.number < before), check_limit(limit))

    def _versions(self, where: Any, limit: int) -> list[VersionRecord]:
        statement = select(dataset_version_rows).where(where).order_by(_VERSIONS.number.desc()).limit(limit)
        return [_version_of(row) for row in self._connection.execute(statement)]

    def heads(self, dataset_ids: Collection[str]) -> dict[str, VersionRecord]:
        joined = dataset_version_rows.join(
            dataset_rows, and_(_DATASETS.id == _VERSIONS.dataset, _DATASETS.head == _VERSIONS.id)
        )
        found: dict[str, VersionRecord] = {}
        for numbers in _portions(dataset_ids):
            statement = select(dataset_version_rows).select_from(joined).where(_VERSIONS.dataset.in_(numbers))
            found |= {version.dataset: version for version in map(_version_of, self._connection.execute(statement))}
        return found

    def tags(self, dataset_ids: Collection[str]) -> list[TagRecord]:
        rows: list[Any] = []
        for numbers in _portions(dataset_ids):
            rows += self._connection.execute(select(dataset_tag_rows).where(_TAGS.dataset.in_(numbers)))
        found = [TagRecord(dataset=f"{PREFIX}{row.dataset}", tag=row.tag, version=row.version) for row in rows]
        return sorted(found, key=lambda record: (record.tag, record.dataset))

    def save_tag(self, tag: TagRecord) -> None:
        replace_rows(self._connection, dataset_tag_rows, [{**asdict(tag), "dataset": _number(tag.dataset)}])

    def delete_tag(self, dataset_id: str, tag: str) -> None:
        where = and_(_TAGS.dataset == _number(dataset_id), _TAGS.tag == tag)
        self._connection.execute(delete(dataset_tag_rows).where(where))

    # ---------------------------------------------------------------- who used them

    def add_uses(self, uses: Sequence[DatasetUse]) -> None:
        rows = [_use_row(use) for use in uses]
        if rows:
            statement = insert_into(self._connection.dialect.name, dataset_use_rows).on_conflict_do_nothing()
            self._connection.execute(statement, rows)

    def uses(self, dataset_id: str, *, version: str | None = None, limit: int) -> list[DatasetUse]:
        where = _USES.dataset == _number(dataset_id)
        return self._uses(where if version is None else and_(where, _USES.version == version), limit)

    def uses_of_job(self, job_id: str) -> list[DatasetUse]:
        return self._uses(_USES.job_id == job_id, None)

    def _uses(self, where: Any, limit: int | None) -> list[DatasetUse]:
        order = (_USES.at.desc(), _USES.job_id, _USES.attempt, _USES.dataset, _USES.version)
        statement = select(dataset_use_rows).where(where).order_by(*order).limit(limit)
        return [_use_of(row) for row in self._connection.execute(statement)]

    def produced_by(self, job_id: str) -> list[VersionRecord]:
        statement = select(dataset_version_rows).where(_VERSIONS.produced_by == job_id).order_by(_VERSIONS.at)
        return [_version_of(row) for row in self._connection.execute(statement)]

    def mounted_by(self, dataset_id: str) -> list[str]:
        # Over the few jobs that are not over, by their index. Specs are compact JSON, in which quotes are escaped: no
        # other text of a job can look like this.
        wanted = f'%"dataset_id":{row_codec.to_json(dataset_id)}%'
        where = and_(literal_column(NOT_ENDED), job_rows.c.spec.like(wanted))
        numbers = self._connection.execute(select(job_rows.c.id).where(where).order_by(job_rows.c.id)).scalars()
        return [row_codec.job_id(number) for number in numbers]

    # ---------------------------------------------------------------- long work

    def next_operation_id(self) -> str:
        return f"{OPERATION_PREFIX}{count_up(self._connection, 'dataset_errand', 1)}"

    def operation(self, operation_id: str) -> OperationRecord | None:
        where = _OPERATIONS.id == _number(operation_id, OPERATION_PREFIX)
        row = self._connection.execute(select(dataset_errand_rows).where(where)).one_or_none()
        return None if row is None else _operation_of(row)

    def operations(
        self, *, target: str | None, dataset: str | None, cursor: str | None, limit: int
    ) -> Page[OperationRecord]:
        statement = select(dataset_errand_rows).order_by(_OPERATIONS.id.desc())
        if target is not None:
            statement = statement.where(_OPERATIONS.target == target)
        if dataset is not None:
            statement = statement.where(_OPERATIONS.dataset == _number(dataset))
        if cursor is not None:
            statement = statement.where(_OPERATIONS.id < decode_cursor(cursor, _NEWEST_FIRST).id)
        rows = self._connection.execute(statement.limit(check_limit(limit) + 1)).all()
        last = rows[limit - 1].id if len(rows) > limit else None
        following = None if last is None else encode_cursor(_NEWEST_FIRST, Position(key=last, id=last))
        return Page(items=tuple(_operation_of(row) for row in rows[:limit]), next_cursor=following)

    def unfinished_operations(self) -> list[OperationRecord]:
        statement = select(dataset_errand_rows).where(literal_column(NOT_OVER)).order_by(_OPERATIONS.id)
        return [_operation_of(row) for row in self._connection.execute(statement)]

    def save_operation(self, operation: OperationRecord) -> None:
        columns = ("id", "dataset", "target", "state")
        body = {field.name: getattr(operation, field.name) for field in fields(operation) if field.name not in columns}
        row = {
            "id": _number(operation.id, OPERATION_PREFIX),
            "dataset": None if operation.dataset is None else _number(operation.dataset),
            "target": operation.target,
            "state": operation.state.value,
            "body": row_codec.to_json({**body, "kind": operation.kind.value, "order": dict(operation.order)}),
        }
        replace_rows(self._connection, dataset_errand_rows, [row])

    def keep_operations(self, most: int) -> int:
        over = _OPERATIONS.state.in_([state.value for state in OperationState if state.is_over])
        oldest = select(_OPERATIONS.id).where(over).order_by(_OPERATIONS.id.desc()).limit(1).offset(most)
        last = self._connection.execute(oldest).scalar_one_or_none()
        if last is None:
            return 0
        return self._connection.execute(delete(dataset_errand_rows).where(over, _OPERATIONS.id <= last)).rowcount


def _number(text: str, prefix: str = PREFIX) -> int:
    """-1, which nobody has, for what is no id."""
    digits = text.removeprefix(prefix)
    is_id = text.startswith(prefix) and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_id and not digits.startswith("0") else -1


def _portions(dataset_ids: Iterable[str]) -> Iterator[list[int]]:
    numbers = sorted({_number(dataset_id) for dataset_id in dataset_ids})
    return (numbers[start : start + CHUNK] for start in range(0, len(numbers), CHUNK))


def _dataset_of(row: Any) -> DatasetRecord:
    values = dict(row._mapping)
    values["id"] = f"{PREFIX}{row.id}"
    values["shares"] = tuple(from_plain(Share, share) for share in row_codec.from_json(row.shares))
    return DatasetRecord(**values)


def _version_of(row: Any) -> VersionRecord:
    return VersionRecord(**{**row._mapping, "dataset": f"{PREFIX}{row.dataset}"})


def _use_row(use: DatasetUse) -> dict[str, Any]:
    values = asdict(use)
    values["user_name"] = values.pop("user")
    return {**values, "dataset": _number(use.dataset)}


def _use_of(row: Any) -> DatasetUse:
    values = dict(row._mapping)
    values["user"] = values.pop("user_name")
    return DatasetUse(**{**values, "dataset": f"{PREFIX}{row.dataset}"})


def _operation_of(row: Any) -> OperationRecord:
    body = row_codec.from_json(row.body)
    return OperationRecord(
        **{**body, "kind": OperationKind(body["kind"])},
        id=f"{OPERATION_PREFIX}{row.id}",
        dataset=None if row.dataset is None else f"{PREFIX}{row.dataset}",
        target=row.target,
        state=OperationState(row.state),
    )
