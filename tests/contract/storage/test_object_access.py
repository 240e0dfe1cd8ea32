"""Buckets behave the same with every provider: against a real S3-compatible server and an emulator of GCS."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from corral.objects.access import NotReachable, ObjectAccess, look, open_filesystem, reaching
from tests.servers.s3_server import SECRET

pytest_plugins = ("tests.servers.fixtures",)

KINDS = ("s3", "gcs")


@pytest.fixture(params=KINDS)
def access(request: pytest.FixtureRequest) -> ObjectAccess:
    server = request.getfixturevalue(f"{request.param}_server")
    reached: ObjectAccess = server.access("contract", "team/data")
    return reached


def test_files_are_put_listed_read_in_parts_and_deleted(access: ObjectAccess) -> None:
    files = open_filesystem(access)
    small, large = bytes(range(256)), bytes(1000) * 9000
    files.pipe_file(f"{access.root}/a/small.bin", small)
    files.pipe_file(f"{access.root}/large.bin", large)

    found = files.find(access.root, detail=True)
    assert {name: entry["size"] for name, entry in found.items()} == {
        "contract/team/data/a/small.bin": 256,
        "contract/team/data/large.bin": 9_000_000,
    }
    assert {entry["name"].rpartition("/")[2]: entry["type"] for entry in files.ls(access.root, detail=True)} == {
        "a": "directory",
        "large.bin": "file",
    }
    assert files.cat_file(f"{access.root}/a/small.bin", start=10, end=20) == small[10:20]
    assert files.cat_file(f"{access.root}/large.bin", start=8_999_990, end=9_000_000) == bytes(10)
    assert files.cat_file(f"{access.root}/large.bin") == large

    assert look(access) == 2
    files.rm_file(f"{access.root}/a/small.bin")
    files.rm_file(f"{access.root}/large.bin")
    assert not files.exists(f"{access.root}/large.bin")
    with reaching(access), pytest.raises(FileNotFoundError):
        files.cat_file(f"{access.root}/large.bin")


def test_an_empty_prefix_is_not_an_error_but_a_missing_bucket_is(access: ObjectAccess) -> None:
    assert look(replace(access, prefix="nothing/here")) == 0
    with pytest.raises(NotReachable, match="there is no bucket no-such-bucket"):
        look(replace(access, bucket="no-such-bucket"))


def test_a_key_that_is_refused_is_said_without_the_secret(access: ObjectAccess) -> None:
    wrong = replace(access, access_key="corral-tests", secret="wrong-secret-7")
    with pytest.raises(NotReachable) as refused:
        look(wrong)
    expected = "contract refuses the key" if access.kind == "s3" else "must be an account's key as JSON"
    assert expected in str(refused.value)
    assert "wrong-secret-7" not in str(refused.value) + repr(wrong)
    assert SECRET not in repr(access)


def test_a_key_of_gcs_that_lacks_something_is_named() -> None:
    access = ObjectAccess(kind="gcs", bucket="b", secret=json.dumps({"type": "service_account", "client_email": "x"}))
    with pytest.raises(NotReachable, match="lacks private_key, token_uri"):
        look(access)


def test_a_server_that_does_not_answer_is_named(s3_server: object) -> None:
    absent = ObjectAccess(kind="s3", bucket="b", endpoint="http://127.0.0.1:9", access_key="k", secret="s3cret")
    with pytest.raises(NotReachable, match=r"bucket b cannot be reached: .*127\.0\.0\.1:9"):
        look(absent)


def test_words_carry_everything_there_and_back(access: ObjectAccess) -> None:
    assert ObjectAccess.from_dict(access.to_dict()) == access
