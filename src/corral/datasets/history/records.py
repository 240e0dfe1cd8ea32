"""The parts of a version: commits, trees and their entries, and how each is encoded.

Everything has exactly one encoding (canonical JSON), so that equal things have equal ids. Names of files are bytes for
the system; here they are text as `os.fsdecode` returns it, which keeps every byte.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from corral.datasets.errors import BadName, Damaged

DIGEST_BYTES = 32
#: Directories in each other, and entries of a version. Equal directories are stored once, so that a few kilobytes can
#: describe more files than any disk holds.
MAX_DEPTH = 128
MAX_ENTRIES = 20_000_000
MAX_SIZE = 1 << 62

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_DATASET = re.compile(rf"{_SEGMENT}(/{_SEGMENT})?")
_TAG = re.compile(_SEGMENT)
_VERSION = re.compile(r"[0-9a-f]{64}")


def digest_of(data: Any) -> bytes:
    """The name of a piece. Hashing releases the interpreter lock, so that other threads run."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """A version: its content, its origin, its author. Its id is the digest of all of that."""

    dataset: str
    #: digest of its top directory, in hexadecimal
    tree: str
    #: id of the previous version
    parent: str | None
    message: str
    author: str
    #: seconds since 1970
    at: float
    #: id of the job that produced it
    job: str | None = None
    files: int = 0
    bytes: int = 0
    #: bytes that had to be stored for it because they were not there yet
    new_bytes: int = 0

    @property
    def id(self) -> str:
        return digest_of(canonical(self.to_dict())).hex()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, body: dict[str, Any], *, expected_id: str | None = None) -> Commit:
        """Raises `Damaged` if it is not a version, or not the expected one."""
        try:
            commit = cls(**body)
        except TypeError as error:
            raise Damaged(f"version {expected_id}", f"it is not a version: {error}") from None
        if expected_id is not None and commit.id != expected_id:
            raise Damaged(f"version {expected_id}", "its record was changed after it was made")
        return commit


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry of a directory."""

    name: str
    kind: Literal["file", "dir", "link"]
    #: size of a file
    size: int = 0
    executable: bool = False
    #: the digest of the piece for a file of one piece, of the list of pieces for a larger file, of the tree for a
    #: directory
    digest: bytes = b""
    #: whether `digest` names a list of pieces
    listed: bool = False
    #: the target of a link, unchanged
    target: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PathEntry:
    """An entry with its path from the top, with slashes."""

    path: str
    entry: Entry


def encode_tree(entries: Sequence[Entry]) -> bytes:
    return canonical([_to_dict(entry) for entry in sorted(entries, key=lambda entry: entry.name)])


def _to_dict(entry: Entry) -> dict[str, Any]:
    if entry.kind == "link":
        return {"name": entry.name, "kind": "link", "target": entry.target}
    if entry.kind == "dir":
        return {"name": entry.name, "kind": "dir", "tree": entry.digest.hex()}
    body: dict[str, Any] = {"name": entry.name, "kind": "file", "size": entry.size}
    body["list" if entry.listed else "piece"] = entry.digest.hex()
    if entry.executable:
        body["executable"] = True
    return body


def decode_tree(data: bytes) -> list[Entry]:
    """The entries of a directory. The names are checked again: the data may come from any bucket."""
    name = f"tree {digest_of(data).hex()}"
    try:
        entries = [_from_dict(body) for body in json.loads(data)]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(name, f"it is not a tree ({type(error).__name__})") from None
    seen = {entry.name for entry in entries}
    if len(seen) != len(entries) or any(_is_dangerous(entry.name) for entry in entries):
        raise Damaged(name, "it holds names that no directory can hold")
    return entries


def _from_dict(body: dict[str, Any]) -> Entry:
    name, kind = str(body["name"]), body["kind"]
    if kind == "link":
        return Entry(name=name, kind="link", target=str(body["target"]))
    if kind == "dir":
        return Entry(name=name, kind="dir", digest=_digest(body["tree"]))
    if kind != "file":
        raise ValueError(kind)
    size = int(body["size"])
    if not 0 <= size < MAX_SIZE:
        raise ValueError(size)
    return Entry(
        name=name,
        kind="file",
        size=size,
        executable=bool(body.get("executable", False)),
        digest=_digest(body["list"] if "list" in body else body["piece"]),
        listed="list" in body,
    )


def _digest(text: str) -> bytes:
    value = bytes.fromhex(text)
    if len(value) != DIGEST_BYTES:
        raise ValueError(text)
    return value


def _is_dangerous(name: str) -> bool:
    return name in ("", ".", "..") or "/" in name or "\0" in name


def encode_list(pieces: Sequence[tuple[bytes, int]]) -> bytes:
    """The pieces of a large file in order: digest and length of each."""
    return b"".join(digest + length.to_bytes(4, "big") for digest, length in pieces)


def decode_list(data: bytes) -> list[tuple[bytes, int]]:
    step = DIGEST_BYTES + 4
    if len(data) % step:
        raise Damaged(f"list {digest_of(data).hex()}", f"{len(data)} bytes are not a list of pieces")
    return [
        (data[at : at + DIGEST_BYTES], int.from_bytes(data[at + DIGEST_BYTES : at + step], "big"))
        for at in range(0, len(data), step)
    ]


def check_dataset(name: str) -> str:
    if not _DATASET.fullmatch(name):
        raise BadName(
            f"{name!r} cannot name a dataset: letters, digits, '.', '_' and '-', at most 63 of them, "
            "with at most one '/' between owner and name"
        )
    return name


def check_tag(tag: str) -> str:
    if not _TAG.fullmatch(tag) or tag == "latest" or tag.endswith((".lock", ".")) or ".." in tag:
        raise BadName(f"{tag!r} cannot be a tag: letters, digits, '.', '_' and '-', at most 63 of them, not 'latest'")
    return tag


def is_version(text: str) -> bool:
    return bool(_VERSION.fullmatch(text))
