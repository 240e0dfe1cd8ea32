"""What a version is made of: commits, trees and what stands in them, and how each is written down.

Everything has one way to be written (canonical JSON), so that equal things have equal ids. Names of files are bytes
to the system; here they are text as `os.fsdecode` gives it, which keeps every byte.
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

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_DATASET = re.compile(rf"{_SEGMENT}(/{_SEGMENT})?")
_TAG = re.compile(_SEGMENT)
_VERSION = re.compile(r"[0-9a-f]{64}")


def digest_of(data: Any) -> bytes:
    """The name of a piece: hashing lets other threads run."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """A version: what it holds, what it came from, who made it. Its id is the digest of all of that."""

    dataset: str
    #: digest of its uppermost directory, as hexadecimal digits
    tree: str
    #: id of the version before it
    parent: str | None
    message: str
    author: str
    #: seconds since 1970
    at: float
    #: id of the job that produced it
    job: str | None = None
    files: int = 0
    bytes: int = 0
    #: what had to be stored for it that was not there yet
    new_bytes: int = 0

    @property
    def id(self) -> str:
        return digest_of(canonical(self.to_words())).hex()

    def to_words(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_words(cls, words: dict[str, Any], *, expected_id: str | None = None) -> Commit:
        """Raises `Damaged` if it is not one, or not the one that was expected."""
        try:
            commit = cls(**words)
        except TypeError as error:
            raise Damaged(f"version {expected_id}", f"it is not a version: {error}") from None
        if expected_id is not None and commit.id != expected_id:
            raise Damaged(f"version {expected_id}", "its record was changed after it was made")
        return commit


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What stands in a directory under one name."""

    name: str
    kind: Literal["file", "dir", "link"]
    #: of a file
    size: int = 0
    executable: bool = False
    #: of a file of one piece its digest, of a larger one that of the list of its pieces, of a directory that of its
    #: tree
    digest: bytes = b""
    #: whether `digest` names a list of pieces
    listed: bool = False
    #: of a link: where it points, kept as it is
    target: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PathEntry:
    """An entry with the way to it from the top, with slashes."""

    path: str
    entry: Entry


def encode_tree(entries: Sequence[Entry]) -> bytes:
    return canonical([_to_words(entry) for entry in sorted(entries, key=lambda entry: entry.name)])


def _to_words(entry: Entry) -> dict[str, Any]:
    if entry.kind == "link":
        return {"name": entry.name, "kind": "link", "target": entry.target}
    if entry.kind == "dir":
        return {"name": entry.name, "kind": "dir", "tree": entry.digest.hex()}
    words: dict[str, Any] = {"name": entry.name, "kind": "file", "size": entry.size}
    words["list" if entry.listed else "piece"] = entry.digest.hex()
    if entry.executable:
        words["executable"] = True
    return words


def decode_tree(data: bytes) -> list[Entry]:
    """The entries of a directory. The names are checked again: what is read may come from anybody's bucket."""
    name = f"tree {digest_of(data).hex()}"
    try:
        entries = [_from_words(words) for words in json.loads(data)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(name, f"it is not a tree ({type(error).__name__})") from None
    seen = {entry.name for entry in entries}
    if len(seen) != len(entries) or any(_is_dangerous(entry.name) for entry in entries):
        raise Damaged(name, "it holds names that no directory can hold")
    return entries


def _from_words(words: dict[str, Any]) -> Entry:
    name, kind = str(words["name"]), words["kind"]
    if kind == "link":
        return Entry(name=name, kind="link", target=str(words["target"]))
    if kind == "dir":
        return Entry(name=name, kind="dir", digest=_digest(words["tree"]))
    if kind != "file":
        raise ValueError(kind)
    return Entry(
        name=name,
        kind="file",
        size=int(words["size"]),
        executable=bool(words.get("executable", False)),
        digest=_digest(words["list"] if "list" in words else words["piece"]),
        listed="list" in words,
    )


def _digest(text: str) -> bytes:
    value = bytes.fromhex(text)
    if len(value) != DIGEST_BYTES:
        raise ValueError(text)
    return value


def _is_dangerous(name: str) -> bool:
    return name in ("", ".", "..") or "/" in name or "\0" in name


def encode_list(pieces: Sequence[tuple[bytes, int]]) -> bytes:
    """The pieces of a large file in their order: digest and length of each."""
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
