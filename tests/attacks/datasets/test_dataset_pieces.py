"""Datasets of all users share a storage; knowing the id of a piece is no way to what others keep there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.client.client import Client
from corral.client.datasets.dataset_transfer import commit
from corral.datasets.content.packs import encode_index
from corral.datasets.history.records import Entry, digest_of, encode_list, encode_tree
from tests.attacks.conftest import SharedMachine

SECRET = b"what only ann knows\n" * 100


@pytest.fixture
def secret(machine: SharedMachine, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The version in which ann keeps it."""
    source = tmp_path / "ann"
    source.mkdir()
    (source / "secret.txt").write_bytes(SECRET)
    with machine.server.client("ann") as ann:
        ann.datasets.create({"name": "hers"})
        done = commit(ann, "hers", source, {"message": ""})
        assert done["state"] == "ready", done
        yield dict(next(ann.datasets.log("hers")))


@pytest.fixture
def eve(machine: SharedMachine) -> Iterator[Client]:
    with machine.server.client("eve") as client:
        client.datasets.create({"name": "mine"})
        yield client


def send(client: Client, *pieces: bytes) -> None:
    pack, index = encode_index("meta", 0.0, [(digest_of(piece), len(piece)) for piece in pieces])
    client.datasets.put_pack("mine", pack, index, pieces)


def committed(client: Client, tree: bytes) -> Any:
    return client.datasets.wait(client.datasets.commit("mine", {"tree": digest_of(tree).hex(), "message": ""}))


def test_the_storage_does_not_say_what_others_have(secret: dict[str, Any], eve: Client) -> None:
    theirs, nobodys = [secret["tree"], digest_of(SECRET).hex()], digest_of(b"nowhere").hex()
    assert set(eve.datasets.missing("mine", [*theirs, nobodys])) == {*theirs, nobodys}


def test_a_commit_cannot_name_anothers_tree(secret: dict[str, Any], eve: Client) -> None:
    ended = eve.datasets.wait(eve.datasets.commit("mine", {"tree": secret["tree"], "message": ""}))
    assert ended["state"] == "failed"
    nowhere = eve.datasets.wait(eve.datasets.commit("mine", {"tree": "ab" * 32, "message": ""}))
    assert ended["error"].replace(secret["tree"], "") == nowhere["error"].replace("ab" * 32, "")


@pytest.mark.parametrize("way", ["a piece", "a list", "a directory"])
def test_a_tree_of_ones_own_cannot_name_anothers_pieces(secret: dict[str, Any], eve: Client, way: str) -> None:
    piece = digest_of(SECRET)
    pieces = encode_list([(piece, len(SECRET))])
    entry = {
        "a piece": Entry(name="stolen", kind="file", size=len(SECRET), digest=piece),
        "a list": Entry(name="stolen", kind="file", size=len(SECRET), digest=digest_of(pieces), listed=True),
        "a directory": Entry(name="stolen", kind="dir", digest=bytes.fromhex(secret["tree"])),
    }[way]
    tree = encode_tree([entry])
    send(eve, tree, pieces)
    assert committed(eve, tree)["state"] == "failed"
    assert list(eve.datasets.log("mine")) == []


def test_an_empty_file_is_no_way_around(secret: dict[str, Any], eve: Client) -> None:
    """An empty file has no pieces, so its id is never looked up when a version is made."""
    piece = digest_of(SECRET)
    tree = encode_tree([Entry(name="empty", kind="file", size=0, digest=piece)])
    send(eve, tree)
    assert committed(eve, tree)["state"] == "ready"
    version = next(eve.datasets.log("mine"))["id"]
    with pytest.raises(Exception, match="not needed by version"):
        eve.datasets.read_pieces("mine", version, [piece.hex()])
    second = encode_tree([Entry(name="stolen", kind="file", size=len(SECRET), digest=piece)])
    send(eve, second)
    assert committed(eve, second)["state"] == "failed"


def test_pieces_sent_by_the_caller_are_not_sent_again(secret: dict[str, Any], eve: Client, tmp_path: Path) -> None:
    source = tmp_path / "eve"
    source.mkdir()
    (source / "same.txt").write_bytes(SECRET)
    assert commit(eve, "mine", source, {"message": ""})["state"] == "ready", "who has the file may commit it"
    assert eve.datasets.missing("mine", [digest_of(SECRET).hex()]) == []
    eve.datasets.create({"name": "other"})
    assert eve.datasets.missing("other", [digest_of(SECRET).hex()]) == []
    # A later version may need what an earlier one of the dataset has.
    (source / "same.txt").rename(source / "renamed.txt")
    assert commit(eve, "mine", source, {"message": ""})["state"] == "ready"


def nested(levels: int, copies: int) -> list[bytes]:
    """Directories in each other, each with so many equal ones; the outermost last."""
    trees = [encode_tree([Entry(name="end", kind="link", target="nowhere")])]
    for _ in range(levels):
        inner = digest_of(trees[-1])
        trees.append(encode_tree([Entry(name=f"d{copy}", kind="dir", digest=inner) for copy in range(copies)]))
    return trees


@pytest.mark.parametrize(
    ("levels", "copies", "words"),
    [(20, 100, "files and directories"), (300, 1, "directories in each other"), (1500, 1, "directories in each other")],
)
def test_few_pieces_that_describe_very_many_files_are_no_version(
    eve: Client, levels: int, copies: int, words: str
) -> None:
    trees = nested(levels, copies)
    send(eve, *trees)
    ended = committed(eve, trees[-1])
    assert ended["state"] == "failed"
    assert words in ended["error"]


@pytest.mark.parametrize(
    "tree", [b"[" * 100_000, b'[{"kind":"file","name":"a","piece":"00","size":-1}]', b'[{"kind":"file","size":1e400}]']
)
def test_a_piece_that_is_no_directory_is_refused_with_words(eve: Client, tree: bytes) -> None:
    send(eve, tree)
    ended = committed(eve, tree)
    assert ended["state"] == "failed"
    assert "not a tree" in ended["error"]


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b"[]", b"{}", b'{"kind":{},"at":1}', b'{"kind":"data","at":NaN}', b'{"kind":"x","at":1}']
)
def test_an_index_that_is_none_is_refused(machine: SharedMachine, eve: Client, header: bytes) -> None:
    piece = b"a piece"
    index = b"corral pack index 1\n" + header + b"\n" + encode_list([(digest_of(piece), len(piece))])
    address = f"/datasets/mine/objects/{digest_of(index).hex()}?index_bytes={len(index)}"
    with machine.server.http("eve") as http:
        answer = http.put(address, content=index + piece)
    assert answer.status_code == 422, answer.text
