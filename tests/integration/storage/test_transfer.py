"""`corral cp` and `corral sync` with a real server: trees both ways, attacks, limits, and what survives kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from corral.core.storage.checksums import checksum_of
from tests.integration.api import problem
from tests.integration.cli_harness import CORRAL, Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.s3_server import ACCESS_KEY, SECRET, S3Server

pytestmark = pytest.mark.slow
pytest_plugins = ("tests.servers.fixtures",)

MIB = 1024 * 1024
LARGE = 96 * MIB


@dataclass(kw_only=True)
class House:
    server: CorralServer
    operator: Person
    ann: Person
    bob: Person
    #: ids by name, of ann's volumes
    volumes: dict[str, str]

    def root(self, volume: str) -> Path:
        """The directory in which the server keeps the volume, to read it without the API."""
        return self.server.home / "volumes" / self.volumes[volume] / "data"

    def make(self, volume: str, **body: Any) -> str:
        with self.server.http("ann") as http:
            answer = http.post("/volumes", json={"name": volume, "type": "filesystem", "size": "1GiB", **body})
            assert answer.status_code == 201, answer.text
            found = str(answer.json()["id"])
            if body.get("type") == "object":
                return found
            wait_until(lambda: http.get(f"/volumes/{found}").json()["state"] == "ready", f"{volume} is ready")
        self.volumes[volume] = found
        return found


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with cli_server(tmp_path_factory.mktemp("transfer"), "--virtual-gpus", "2xA100-80G") as server:
        operator = operator_of(server)
        ann, bob = scientist(server, operator, "ann"), scientist(server, operator, "bob")
        for name in ("ann", "bob"):
            server.token(name, f"{name}-password-1")
        made = House(server=server, operator=operator, ann=ann, bob=bob, volumes={})
        made.make("data")
        made.make("copy")
        yield made


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A directory of ann's, with all that names and files can be."""
    root = tmp_path / "desk"
    files = {
        "a.txt": b"hello",
        "with space/ünï cödé.bin": os.urandom(70_000),
        "with space/empty": b"",
        "deep/er/and/deeper": b"x" * 10,
        "'quotes' & $HOME *?": b"shell",
        "larger.bin": os.urandom(9 * MIB),
    }
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        os.utime(place, ns=(1_700_000_000_123_000_000,) * 2)
    (root / "hollow").mkdir()
    return root


def contents(root: Path) -> dict[str, bytes | None]:
    """Every file and directory below, without what is on its way."""
    return {
        str(place.relative_to(root)): place.read_bytes() if place.is_file() else None
        for place in sorted(root.rglob("*"))
        if ".corral-uploads" not in place.parts
    }


def test_a_tree_goes_there_and_back_and_from_volume_to_volume(house: House, desk: Path, tmp_path: Path) -> None:
    done = house.ann.read("cp", "-r", str(desk), "data:/tree")
    assert (done["files"], done["skipped"], done["failed"]) == (6, 0, [])
    assert done["bytes"] == sum(place.stat().st_size for place in desk.rglob("*") if place.is_file())
    assert contents(house.root("data") / "tree") == contents(desk)
    assert (house.root("data") / "tree" / "a.txt").stat().st_mtime_ns == 1_700_000_000_123_000_000
    # The same again sends nothing.
    again = house.ann.read("cp", "-r", str(desk), "data:/tree", "--dry-run")
    assert {action["action"] for action in again["actions"]} <= {"mkdir", "copy"}
    nothing = house.ann.read("sync", str(desk), "data:/tree")
    assert (nothing["files"], nothing["bytes"], nothing["skipped"]) == (0, 0, 6)
    # Through this machine into another volume, and back.
    between = house.ann.read("sync", "data:/tree", "ann/copy:/tree")
    assert (between["files"], between["failed"]) == (6, [])
    assert contents(house.root("copy") / "tree") == contents(desk)
    back = house.ann.read("cp", "-r", "copy:/tree", str(tmp_path / "back"))
    assert back["files"] == 6
    assert contents(tmp_path / "back") == contents(desk)
    assert (tmp_path / "back" / "a.txt").stat().st_mtime_ns == 1_700_000_000_123_000_000


def test_files_are_copied_under_the_names_that_cp_would_give(house: House, desk: Path, tmp_path: Path) -> None:
    house.ann.ok("cp", str(desk / "a.txt"), "data:/named/")
    house.ann.ok("cp", str(desk / "a.txt"), "data:/named/b.txt")
    house.ann.ok("cp", str(desk / "a.txt"), str(desk / "larger.bin"), "data:/named/two")
    assert sorted(contents(house.root("data") / "named")) == ["a.txt", "b.txt", "two", "two/a.txt", "two/larger.bin"]
    house.ann.ok("cp", "data:/named/b.txt", str(tmp_path))
    assert (tmp_path / "b.txt").read_bytes() == b"hello"
    assert "is a directory" in house.ann.run("cp", str(desk), "data:/x", code=2).err
    assert "must be a volume" in house.ann.run("cp", str(desk), str(tmp_path), code=2).err
    assert "there is no" in house.ann.run("cp", "data:/nothing", str(tmp_path), code=2).err
    assert house.ann.run("cp", str(desk / "a.txt"), "no-such-volume:/", code=4).err
    listed = house.ann.read("volume", "files", "data", "named", "-r")["items"]
    assert [entry["path"] for entry in listed if entry["kind"] == "file"] == [
        "named/a.txt",
        "named/b.txt",
        "named/two/a.txt",
        "named/two/larger.bin",
    ]
    house.ann.ok("volume", "rm-file", "data", "named/b.txt")
    assert not (house.root("data") / "named" / "b.txt").exists()


def test_a_sync_copies_what_changed_and_deletes_what_is_too_much(house: House, desk: Path) -> None:
    house.ann.ok("sync", str(desk), "data:/synced")
    (desk / "a.txt").write_text("changed")
    (desk / "with space" / "empty").unlink()
    (desk / "new").write_text("new")
    dry = house.ann.read("sync", str(desk), "data:/synced", "--delete", "--dry-run")
    assert [(action["action"], action["path"]) for action in dry["actions"]] == [
        ("copy", "data:/synced/a.txt"),
        ("copy", "data:/synced/new"),
        ("delete", "data:/synced/with space/empty"),
    ]
    assert (house.root("data") / "synced" / "a.txt").read_bytes() == b"hello"
    done = house.ann.read("sync", str(desk), "data:/synced", "--delete")
    assert (done["files"], done["deleted"], done["skipped"]) == (2, 1, 4)
    assert contents(house.root("data") / "synced") == contents(desk)
    # The same content under another time is sent unless contents are compared.
    os.utime(desk / "new", (1, 1))
    assert house.ann.read("sync", str(desk), "data:/synced", "--checksum")["files"] == 0
    assert house.ann.read("sync", str(desk), "data:/synced")["files"] == 1


def test_nothing_is_deleted_if_something_failed(house: House, desk: Path) -> None:
    house.ann.ok("sync", str(desk), "data:/careful")
    (desk / "a.txt").unlink()
    (desk / "new").write_text("new")
    (desk / "larger.bin").write_text("shorter")
    there = house.root("data") / "careful"
    (there / "new").mkdir()
    (there / "new" / "file").write_text("in the way")
    failed = house.ann.run("-o", "json", "sync", str(desk), "data:/careful", code=1).document
    assert [each["path"] for each in failed["failed"]] == ["data:/careful/new"]
    assert "directory" in failed["failed"][0]["detail"]
    assert (there / "larger.bin").read_text() == "shorter"
    assert (there / "a.txt").exists()
    cleared = house.ann.read("sync", str(desk), "data:/careful", "--delete")
    assert cleared["failed"] == []
    assert contents(there) == contents(desk)


def upload_body(path: str, content: bytes) -> dict[str, Any]:
    return {"path": path, "size": len(content), "part_bytes": 65536}


def test_wrong_checksums_and_paths_that_lead_out_are_refused(house: House, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of another user")
    root = house.root("data")
    (root / "out").symlink_to(secret)
    (root / "up").symlink_to(tmp_path)
    files = f"/volumes/{house.volumes['data']}/files"
    uploads = f"/volumes/{house.volumes['data']}/uploads"
    good = {"X-Checksum": checksum_of([b"x"])}
    with house.server.http("ann") as http:
        for path in ("../secret", "a/../../secret", "/etc/passwd", "x" * 300):
            assert problem(http.get(f"{files}/content", params={"path": path}), 422)["errors"][0]["field"] == "path"
            problem(http.put(f"{files}/content", params={"path": path}, content=b"x", headers=good), 422)
            problem(http.delete(files, params={"path": path}), 422)
            problem(http.post(uploads, json=upload_body(path, b"x")), 422)
        assert problem(http.get(f"{files}/content", params={"path": "out"}), 409)["type"] == "/problems/file-refused"
        problem(http.get(f"{files}/content", params={"path": "up/secret"}), 409)
        problem(http.put(f"{files}/content", params={"path": "up/mine"}, content=b"x", headers=good), 409)
        wrong = {"X-Checksum": checksum_of([b"y"])}
        refused = http.put(f"{files}/content", params={"path": "bad"}, content=b"x", headers=wrong)
        assert problem(refused, 409)["type"] == "/problems/checksum-mismatch"
        begun = http.post(uploads, json=upload_body("bad", b"12345")).json()
        assert (begun["have"], begun["parts"]) == ([], 1)
        part = f"{uploads}/{begun['id']}/parts/0"
        assert problem(http.put(part, content=b"54321", headers=wrong), 409)["type"] == "/problems/checksum-mismatch"
        assert problem(http.put(part, content=b"123456", headers=wrong), 409)["type"] == "/problems/file-refused"
        done = f"{uploads}/{begun['id']}/complete"
        missing = problem(http.post(done, json={"checksum": checksum_of([b"12345"])}), 409)
        assert (missing["type"], missing["missing"]) == ("/problems/parts-missing", [0])
        right = {"X-Checksum": checksum_of([b"12345"])}
        assert http.put(part, content=b"12345", headers=right).status_code == 204
        assert http.post(uploads, json=upload_body("bad", b"12345")).json()["have"] == [0]
        assert problem(http.post(done, json={"checksum": wrong["X-Checksum"]}), 409)["type"].endswith("mismatch")
        # That upload is given up: it begins anew.
        assert http.post(uploads, json=upload_body("bad", b"12345")).json()["have"] == []
        problem(http.get(f"{files}/stat", params={"path": "bad"}), 404)
    assert secret.read_text() == "of another user"
    assert not (tmp_path / "mine").exists()


def test_strangers_find_nothing_and_readers_do_not_write(house: House, desk: Path, tmp_path: Path) -> None:
    house.ann.ok("cp", str(desk / "a.txt"), "data:/for-bob/")
    assert house.bob.run("cp", "ann/data:/for-bob/a.txt", str(tmp_path), code=4).err
    shares = {"shares": [{"kind": "user", "name": "bob", "mode": "ro"}]}
    with house.server.http("ann") as http:
        assert http.put(f"/volumes/{house.volumes['data']}/shares", json=shares).is_success
    house.bob.ok("cp", "data:/for-bob/a.txt", str(tmp_path))
    assert (tmp_path / "a.txt").read_bytes() == b"hello"
    refused = house.bob.run("cp", str(desk / "a.txt"), "ann/data:/from-bob", code=3)
    assert "may not write" in refused.err
    assert not (house.root("data") / "from-bob").exists()


def test_upload_that_does_not_fit_is_refused_with_the_numbers(house: House, tmp_path: Path) -> None:
    house.make("small", size="4MiB")
    (tmp_path / "fits").write_bytes(os.urandom(3 * MIB))
    (tmp_path / "too-much").write_bytes(os.urandom(2 * MIB))
    house.ann.ok("cp", str(tmp_path / "fits"), "small:/")
    refused = house.ann.run("-o", "json", "cp", str(tmp_path / "too-much"), "small:/", code=1).document
    assert refused["failed"][0]["path"] == "small:/too-much"
    assert "may hold 4MiB" in refused["failed"][0]["detail"]
    assert "needs 2MiB" in refused["failed"][0]["detail"]
    assert sorted(contents(house.root("small"))) == ["fits"]


def test_a_block_volume_that_a_job_writes_is_not_written_from_outside(house: House, desk: Path) -> None:
    house.make("block", type="block", size="1GiB")
    with house.server.http("ann") as http:
        answer = http.post("/jobs", json={"command": ["sleep", "600"], "mounts": ["block:/work"]})
        assert answer.is_success, answer.text
        job = str(answer.json()["id"])
    house.ann.wait_for(job, "running")
    refused = house.ann.run("-o", "json", "cp", str(desk / "a.txt"), "block:/", code=1).document
    assert f"written by {job}" in refused["failed"][0]["detail"]
    assert house.ann.read("volume", "files", "block")["items"] == []
    house.ann.ok("stop", job)
    wait_until(lambda: house.ann.state(job) not in ("running", "stopping"), "the job has stopped")
    house.ann.ok("cp", str(desk / "a.txt"), "block:/")


def test_a_bucket_is_a_place_like_any_other(house: House, desk: Path, tmp_path: Path, s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket("transfer")
    store = {"name": "lab", "kind": "s3", "endpoint": s3_server.url, "bucket": "transfer", "access_key": ACCESS_KEY}
    with house.server.http() as http:
        for name, allowed in (("lab", True), ("museum", False)):
            body = {**store, "name": name, "secret": SECRET, "allow_write": allowed}
            answer = http.post("/object-stores", json=body)
            assert answer.status_code == 201, answer.text
    house.make("objects", type="object", size=0, object_store="lab", prefix="ann")
    house.make("exhibits", type="object", size=0, object_store="museum", prefix="ann")
    done = house.ann.read("cp", "-r", str(desk), "objects:/tree")
    assert (done["files"], done["failed"]) == (6, [])
    files = {path: content for path, content in contents(desk).items() if content is not None}
    stored = contents(bucket / "ann" / "tree")
    assert {path: content for path, content in stored.items() if content is not None} == files
    # The second time there is nothing to do, although a bucket has times of its own.
    assert house.ann.read("sync", str(desk), "objects:/tree")["files"] == 0
    (desk / "a.txt").write_text("changed")
    (desk / "larger.bin").unlink()
    done = house.ann.read("sync", str(desk), "objects:/tree", "--delete")
    assert (done["files"], done["deleted"]) == (1, 1)
    back = house.ann.read("cp", "-r", "exhibits:/tree", str(tmp_path / "back"))
    assert (back["files"], back["failed"]) == (5, [])
    files = {path: content for path, content in contents(desk).items() if content is not None}
    assert {path: content for path, content in contents(tmp_path / "back").items() if content is not None} == files
    assert "read-only" in house.ann.run("cp", str(desk / "a.txt"), "exhibits:/", code=3).err
    house.ann.ok("sync", "objects:/tree", "copy:/from-bucket")
    assert (house.root("copy") / "from-bucket" / "a.txt").read_text() == "changed"
    assert SECRET not in house.server.log()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("large") / "large.bin"
    place.write_bytes(os.urandom(MIB) * (LARGE // MIB))
    return place


def started(someone: Person, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*CORRAL, "-o", "json", *args],
        env=someone.environment(),
        cwd=someone.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(reached: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Often: what is waited for is over soon."""
    deadline = time.monotonic() + 60
    while not reached():
        assert process.poll() is None, "it ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def parts_there(root: Path) -> int:
    return sum(place.stat().st_size // 11 for place in (root / ".corral-uploads").glob("*/have"))


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_an_upload_that_is_interrupted_goes_on(house: House, large: Path, ending: signal.Signals) -> None:
    root, name = house.root("data"), f"upload-{ending.name}"
    process = started(house.ann, "cp", "-j", "1", str(large), f"data:/{name}")
    wait_for(lambda: parts_there(root) >= 2, process)
    process.send_signal(ending)
    _, err = process.communicate(timeout=60)
    assert not (root / name).exists()
    if ending is signal.SIGINT:
        assert process.returncode == 130, err
        assert b"run the same command again" in err
    done = house.ann.read("cp", str(large), f"data:/{name}")
    assert done["resumed_bytes"] >= 2 * 8 * MIB
    assert done["bytes"] + done["resumed_bytes"] == LARGE
    assert (root / name).read_bytes() == large.read_bytes()
    assert parts_there(root) == 0
    assert house.ann.read("cp", str(large), f"data:/{name}")["skipped"] == 1


def test_a_download_that_is_killed_goes_on_and_begins_anew_if_the_source_changed(
    house: House, large: Path, tmp_path: Path
) -> None:
    root, target = house.root("data"), tmp_path / "large.bin"
    part, content = tmp_path / ".large.bin.corral-part", large.read_bytes()
    (root / "source.bin").write_bytes(content)

    def interrupted() -> None:
        process = started(house.ann, "cp", "data:/source.bin", str(target))
        wait_for(lambda: part.exists() and part.stat().st_size >= 4 * MIB, process)
        process.kill()
        process.communicate(timeout=60)
        assert not target.exists()

    interrupted()
    kept = part.stat().st_size
    done = house.ann.read("cp", "data:/source.bin", str(target))
    assert (done["resumed_bytes"], done["bytes"]) == (kept, LARGE - kept)
    assert target.read_bytes() == content
    assert os.listdir(tmp_path) == ["large.bin"]
    target.unlink()
    interrupted()
    changed = content[::-1]
    (root / "source.bin").write_bytes(changed)
    done = house.ann.read("cp", "data:/source.bin", str(target))
    assert (done["resumed_bytes"], done["bytes"]) == (0, LARGE)
    assert target.read_bytes() == changed


def test_a_server_that_is_killed_in_the_middle_is_waited_for(house: House, large: Path, tmp_path: Path) -> None:
    root = house.root("data")
    (root / "through").write_text("what was there before")
    process = started(house.ann, "cp", "-j", "1", str(large), "data:/through")
    wait_for(lambda: parts_there(root) >= 2, process)
    house.server.kill()
    assert (root / "through").read_text() == "what was there before"
    had = parts_there(root)
    house.server.start()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    done = json.loads(out)
    assert had >= 2
    assert done["bytes"] == LARGE
    assert (root / "through").read_bytes() == large.read_bytes()
