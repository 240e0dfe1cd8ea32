"""Datasets: where they are kept, their versions, and which jobs used and made them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.bulk_insert(
        sa.table("counters", sa.column("name"), sa.column("value")),
        [{"name": "dataset", "value": 0}, {"name": "dataset_errand", "value": 0}],
    )
    op.create_table(
        "dataset_targets",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_dataset_targets"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("shares", sa.Text(), nullable=False),
        sa.Column("head", TEXT, nullable=True),
        sa.Column("versions", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("owner", "name", name="uq_datasets_owner_name"),
    )
    op.create_index("ix_datasets_target", "datasets", ["target"])
    _create_versions()
    _create_uses_and_operations()


def _create_versions() -> None:
    op.create_table(
        "dataset_versions",
        sa.Column("dataset", ROW_ID, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("parent", TEXT, nullable=True),
        sa.Column("tree", TEXT, nullable=False),
        sa.Column("message", TEXT, nullable=False),
        sa.Column("author", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("new_bytes", sa.BigInteger(), nullable=False),
        sa.Column("produced_by", TEXT, nullable=True),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.id"], name="fk_dataset_versions_dataset", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset", "id", name="pk_dataset_versions"),
        sa.UniqueConstraint("dataset", "number", name="uq_dataset_versions_dataset_number"),
    )
    op.create_index("ix_dataset_versions_produced_by", "dataset_versions", ["produced_by"])
    op.create_table(
        "dataset_tags",
        sa.Column("dataset", ROW_ID, nullable=False),
        sa.Column("tag", TEXT, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.id"], name="fk_dataset_tags_dataset", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset", "tag", name="pk_dataset_tags"),
    )


def _create_uses_and_operations() -> None:
    op.create_table(
        "dataset_uses",
        sa.Column("dataset", sa.BigInteger(), nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("job_id", TEXT, nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("job_name", TEXT, nullable=False),
        sa.Column("user_name", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("dataset", "version", "job_id", "attempt", name="pk_dataset_uses"),
    )
    op.create_index("ix_dataset_uses_job_id", "dataset_uses", ["job_id"])
    op.create_table(
        "dataset_errands",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        sa.Column("dataset", ROW_ID, nullable=True),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["dataset"], ["datasets.id"], name="fk_dataset_errands_dataset", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_dataset_errands"),
    )
    op.create_index("ix_dataset_errands_dataset", "dataset_errands", ["dataset"])
    not_over = sa.text("state IN ('waiting', 'working')")
    op.create_index(
        "ix_dataset_errands_not_over", "dataset_errands", ["id"], sqlite_where=not_over, postgresql_where=not_over
    )
