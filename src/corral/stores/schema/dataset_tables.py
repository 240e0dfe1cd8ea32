"""The part of the schema for datasets. See `tables`."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text

from corral.stores.schema.tables import (
    PlainText,
    json_column,
    metadata,
    name_column,
    number,
    row_id,
    text_column,
    time_column,
)

#: A literal text, because SQLite uses a partial index only for a query with exactly the same condition.
NOT_OVER = "state IN ('waiting', 'working')"


def _of_dataset() -> Column[int]:
    return Column("dataset", ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False)


dataset_target_rows = Table("dataset_targets", metadata, name_column(), json_column("body"))

dataset_rows = Table(
    "datasets",
    metadata,
    row_id(),
    text_column("name"),
    text_column("owner"),
    text_column("target"),
    text_column("description"),
    json_column("shares"),
    text_column("head", nullable=True),
    number("versions"),
    number("size_bytes"),
    time_column("created_at"),
    UniqueConstraint("owner", "name"),
    Index(None, "target"),
)

dataset_version_rows = Table(
    "dataset_versions",
    metadata,
    _of_dataset(),
    Column("id", PlainText, nullable=False),
    number("number"),
    text_column("parent", nullable=True),
    text_column("tree"),
    text_column("message"),
    text_column("author"),
    time_column("at"),
    number("files"),
    number("bytes"),
    number("new_bytes"),
    text_column("produced_by", nullable=True),
    PrimaryKeyConstraint("dataset", "id"),
    UniqueConstraint("dataset", "number"),
    Index(None, "produced_by"),
)

dataset_tag_rows = Table(
    "dataset_tags",
    metadata,
    _of_dataset(),
    Column("tag", PlainText, nullable=False),
    text_column("version"),
    PrimaryKeyConstraint("dataset", "tag"),
)

# Without a foreign key: the row outlives the job and the version.
dataset_use_rows = Table(
    "dataset_uses",
    metadata,
    number("dataset"),
    text_column("version"),
    text_column("job_id"),
    number("attempt"),
    text_column("job_name"),
    text_column("user_name"),
    time_column("at"),
    PrimaryKeyConstraint("dataset", "version", "job_id", "attempt"),
    Index(None, "job_id"),
)

dataset_operation_rows = Table(
    "dataset_errands",
    metadata,
    row_id(),
    Column("dataset", ForeignKey("datasets.id", ondelete="CASCADE"), nullable=True),
    text_column("target"),
    text_column("state"),
    json_column("body"),
    Index(None, "dataset"),
    Index("ix_dataset_errands_not_over", "id", sqlite_where=text(NOT_OVER), postgresql_where=text(NOT_OVER)),
)
