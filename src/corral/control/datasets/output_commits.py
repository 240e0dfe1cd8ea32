"""Outputs that a job commits when it completes: `DATASET` or `DATASET=PATH`, checked when the job is submitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from corral.control.datasets import datasets
from corral.control.errors import Invalid, NotFound
from corral.control.live.unit_of_work import Caller
from corral.control.ports import Transaction

FIELD = "commit_outputs"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputCommit:
    dataset: str
    #: within the job's output directory; "" means all of it
    path: str


def parse_commit(text: str) -> OutputCommit:
    name, _, path = text.partition("=")
    parts = PurePosixPath(path).parts
    if not name or path.startswith("/") or ".." in parts:
        raise Invalid(
            f"{text[:80]!r} is not DATASET or DATASET=PATH, with a path within the job's outputs", field=FIELD
        )
    return OutputCommit(dataset=name, path="/".join(parts))


def check_commit(tx: Transaction, caller: Caller, text: str) -> None:
    """Refused while the dataset does not exist, or the caller may not write to it."""
    try:
        datasets.writable(tx, caller, parse_commit(text).dataset)
    except NotFound as missing:
        raise Invalid(missing.detail, field=FIELD) from None
