"""Datasets on a real server: committed, mounted into real jobs, traced, repeated; killed and damaged in between."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.cli_harness import Person, person
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

FILES = 40
#: Large enough that a commit can be killed while it reads.
LARGE_BYTES = 160 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server(users=("ann", "bob")) as started:
        yield started


@pytest.fixture(scope="module")
def ann(server: CorralServer) -> Person:
    return at_a_shell(server, "ann")


@pytest.fixture
def api(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http("ann") as client:
        yield client


def at_a_shell(server: CorralServer, name: str) -> Person:
    who = person(server, f"{server.port}-{name}")
    who.env["CORRAL_TOKEN"] = server.token(name)
    return who


def refused(who: Person, *args: str) -> str:
    """The message of a command that fails."""
    done = who.run(*args)
    assert done.code != 0, done.out
    return done.out + done.err


def fill(directory: Path, files: int = FILES) -> Path:
    (directory / "train").mkdir(parents=True)
    for number in range(files):
        (directory / "train" / f"{number:03d}.txt").write_text(f"sample {number}\n" * 300)
    (directory / "labels.bin").write_bytes(os.urandom(3_000_000))
    (directory / "latest").symlink_to("train/000.txt")
    return directory


def ended(api: httpx.Client, job: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        found: dict[str, Any] = api.get(f"/jobs/{job}").json()
        return found

    wait_until(lambda: look()["state"] in ("completed", "failed", "stopped"), f"{job} is over", seconds=60)
    return look()


def submit(api: httpx.Client, command: str, **body: Any) -> str:
    answer = api.post("/jobs", json={"command": ["sh", "-c", command], "max_retries": 0, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def over(api: httpx.Client, address: str) -> dict[str, Any]:
    wait_until(lambda: api.get(address).json()["state"] in ("ready", "failed"), f"{address} is over", seconds=120)
    found: dict[str, Any] = api.get(address).json()
    return found


def test_the_story_of_a_dataset(ann: Person, api: httpx.Client, tmp_path: Path) -> None:
    source = fill(tmp_path / "digits")
    ann.ok("dataset", "create", "digits")
    first = ann.read("dataset", "commit", "digits", str(source), "-m", "first import", "--tag", "v1")
    assert (first["files"], first["created"]) == (FILES + 1, True)

    # a job reads the tagged version, and its environment says which one that is
    command = 'cat "$CORRAL_MOUNT_DIGITS/train/007.txt" | head -1; echo "$CORRAL_DATASET_DIGITS_VERSION"'
    mount = {"mounts": ["dataset:digits@v1:/data/digits"]}
    job = submit(api, command, name="reader", **mount)
    assert ended(api, job)["state"] == "completed"
    log = api.get(f"/jobs/{job}/logs").text
    assert "sample 7" in log
    assert first["id"] in log
    assert api.get(f"/jobs/{job}").json()["mounts"][0]["version"] == first["id"]

    # one percent changes, and little more than that is stored
    with (source / "labels.bin").open("r+b") as file:
        file.seek(1_000_000)
        file.write(os.urandom(20_000))
    (source / "train" / "007.txt").write_text("another sample\n")
    second = ann.read("dataset", "commit", "digits", str(source), "-m", "corrected", "--tag", "v1")
    assert second["parent"] == first["id"]
    assert second["new_bytes"] < first["new_bytes"] / 2
    assert ann.read("dataset", "commit", "digits", str(source))["created"] is False

    changed = ann.read("dataset", "diff", "digits")
    assert [one["path"] for one in changed["changed"]] == ["labels.bin", "train/007.txt"]
    assert (changed["added_count"], changed["removed_count"]) == (0, 0)

    # the tag has moved on; the clone repeats the run with the version of then
    again = api.post(f"/jobs/{job}/clone", json={}).json()["id"]
    assert ended(api, again)["state"] == "completed"
    assert "sample 7" in api.get(f"/jobs/{again}/logs").text
    # a new one gets what the tag means now
    other = submit(api, command, **mount)
    assert ended(api, other)["state"] == "completed"
    assert "another sample" in api.get(f"/jobs/{other}/logs").text

    # lineage both ways
    found = ann.read("dataset", "lineage", "digits@" + first["short"])
    assert {one["id"] for one in found["versions"][0]["used_by"]} == {job, again}
    assert [one["version"] for one in ann.read("dataset", "lineage", "--job", other)["used"]] == [second["id"]]

    # what a job wrote becomes a version that is known as made by it
    maker = submit(api, 'mkdir "$CORRAL_OUTPUT_DIR/weights"; echo 1 > "$CORRAL_OUTPUT_DIR/weights/w"', name="maker")
    assert ended(api, maker)["state"] == "completed"
    ann.ok("dataset", "create", "weights")
    made = ann.read("dataset", "commit", "weights", "--job", "maker", "--path", "weights")
    assert (made["produced_by"], made["files"]) == (maker, 1)
    assert [one["version"] for one in ann.read("dataset", "lineage", "--job", "maker")["produced"]] == [made["id"]]

    # and back on the laptop, whole; into a directory that is not empty nothing is written
    ann.ok("dataset", "checkout", "digits", str(tmp_path / "copy"))
    assert subprocess.run(["diff", "-r", str(source), str(tmp_path / "copy")], check=False).returncode == 0
    assert (tmp_path / "copy" / "latest").readlink() == Path("train/000.txt")
    assert "not empty" in refused(ann, "dataset", "checkout", "digits", str(tmp_path / "copy"))


def test_a_directory_of_a_volume_is_committed_and_no_link_leads_out_of_it(ann: Person, api: httpx.Client) -> None:
    api.post("/volumes", json={"name": "work", "type": "filesystem", "size": "1GiB"}).raise_for_status()
    wait_until(lambda: api.get("/volumes/work").json()["state"] == "ready", "the volume is there")
    write = (
        'cd "$CORRAL_MOUNT_WORK"; mkdir -p clean/a; echo 1 > clean/a/one; ln -s /etc out; ln -s ../../../.. clean/up'
    )
    assert ended(api, submit(api, write, mounts=["work:/work:rw"]))["state"] == "completed"
    ann.ok("dataset", "create", "from-volume")
    made = ann.read("dataset", "commit", "from-volume", "--volume", "work", "--path", "clean", "-m", "by the server")
    assert made["files"] == 1
    # a link is kept as a link, and none is followed on the way
    kinds = {one["name"]: one["kind"] for one in api.get("/datasets/from-volume/versions/latest/files").json()["items"]}
    assert kinds == {"a": "dir", "up": "link"}
    assert "no directory" in refused(ann, "dataset", "commit", "from-volume", "--volume", "work", "--path", "out")
    assert "no directory" in refused(ann, "dataset", "commit", "from-volume", "--volume", "work", "--path", "nowhere")


def test_rights_on_shared_datasets(server: CorralServer, ann: Person, tmp_path: Path) -> None:
    bob = at_a_shell(server, "bob")
    ann.ok("dataset", "create", "shared")
    ann.ok("dataset", "commit", "shared", str(fill(tmp_path / "shared", 2)))
    assert "there is no dataset" in refused(bob, "dataset", "show", "ann/shared")
    ann.ok("dataset", "share", "shared", "--user", "bob")
    assert bob.read("dataset", "show", "shared")["may_write"] is False
    assert "to read" in refused(bob, "dataset", "commit", "shared", str(tmp_path))
    bob.ok("dataset", "checkout", "ann/shared", str(tmp_path / "of-bob"))
    ann.ok("dataset", "share", "shared", "--user", "bob", "--write")
    assert bob.read("dataset", "commit", "ann/shared", str(tmp_path / "of-bob"))["created"] is False
    # pieces of other datasets cannot be had by their names
    with server.http("ann") as owner, server.http("bob") as other:
        tree = owner.get("/datasets/digits").json()["latest"]["tree"]
        address = "/datasets/shared/versions/latest/objects:read"
        assert problem(other.post(address, json={"ids": [tree]}), 404)["detail"].startswith("piece")


def test_a_dataset_that_a_job_mounts_is_not_deleted(ann: Person, api: httpx.Client, tmp_path: Path) -> None:
    ann.ok("dataset", "create", "busy")
    ann.ok("dataset", "commit", "busy", str(fill(tmp_path / "busy", 2)))
    job = submit(api, "sleep 600", mounts=["dataset:busy:/data/busy"])
    assert job in problem(api.delete("/datasets/busy"), 409)["detail"]
    api.post(f"/jobs/{job}/stop").raise_for_status()
    ended(api, job)
    assert api.delete("/datasets/busy").status_code == 204
    # started once more it is refused: what it mounts is gone
    assert "d-" in problem(api.post(f"/jobs/{job}/start"), 409)["detail"]
    assert problem(api.post("/jobs", json={"command": ["true"], "mounts": ["dataset:busy:/d"]}), 422)["errors"]


def test_damaged_version_is_named_and_no_job_starts_with_it(
    server: CorralServer, ann: Person, api: httpx.Client, tmp_path: Path
) -> None:
    ann.ok("dataset", "create", "brittle")
    source = tmp_path / "brittle"
    source.mkdir()
    (source / "only.bin").write_bytes(os.urandom(50_000))
    before = set((server.home / "datasets" / "packs").rglob("*"))
    ann.ok("dataset", "commit", "brittle", str(source))
    packs = [path for path in set((server.home / "datasets" / "packs").rglob("*")) - before if path.is_file()]
    pack = max(packs, key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[20_000] ^= 1
    pack.write_bytes(data)

    job = submit(api, "echo it ran", mounts=["dataset:brittle:/data"])
    failed = ended(api, job)
    assert (failed["state"], failed["end_reason"]) == ("failed", "launch_error")
    attempt = api.get(f"/jobs/{job}/attempts").json()["items"][0]
    assert pack.name in attempt["message"]
    assert "only.bin" in attempt["message"]
    assert "it ran" not in api.get(f"/jobs/{job}/logs").text
    # checking, downloading and checking out fail with the same message
    verified = refused(ann, "dataset", "verify", "brittle", "-o", "json")
    assert pack.name in verified
    assert pack.name in problem(api.get("/datasets/brittle/versions/latest/content?path=only.bin"), 502)["detail"]
    assert "damaged" in refused(ann, "dataset", "checkout", "brittle", str(tmp_path / "never"))
    assert not (tmp_path / "never").exists()


def test_a_changed_checkout_on_the_node_is_not_used_again(
    server: CorralServer, ann: Person, api: httpx.Client, tmp_path: Path
) -> None:
    ann.ok("dataset", "create", "cached")
    version = ann.read("dataset", "commit", "cached", str(fill(tmp_path / "cached", 3)))["id"]
    show = 'head -1 "$CORRAL_MOUNT_CACHED/train/001.txt"'
    mounts = ["dataset:cached:/data/cached"]
    assert ended(api, submit(api, show, mounts=mounts))["state"] == "completed"
    cache = server.home / "dataset-cache"
    assert [path.name for path in cache.glob(f"{version}.?")] == [f"{version}.1"]
    touched = cache / f"{version}.1" / "train" / "001.txt"
    os.chmod(touched, 0o644)
    touched.write_text("sample 2\n" * 300)
    job = submit(api, show, mounts=mounts)
    assert ended(api, job)["state"] == "completed"
    assert "sample 1" in api.get(f"/jobs/{job}/logs").text
    # The changed copy is removed, and a new one has the right content.
    (copy,) = cache.glob(f"{version}.?")
    assert (copy / "train" / "001.txt").read_text().startswith("sample 1")


def test_commits_and_collections_that_are_killed_do_no_harm(tmp_path: Path) -> None:
    with api_server(users=("ann",)) as server:
        with server.http("ann") as api, server.http() as operator:
            api.post("/datasets", json={"name": "large"}).raise_for_status()
            job = submit(api, f'head -c {LARGE_BYTES} /dev/urandom > "$CORRAL_OUTPUT_DIR/large.bin"', name="maker")
            assert ended(api, job)["state"] == "completed"
            operation = api.post("/datasets/large/commits", json={"from": {"job": job}}).json()["id"]
            address = f"/datasets/large/commits/{operation}"
            # its process is killed while it stores: it is begun again by the server
            wait_until(lambda: _stored(api, address) > 0, "it is storing", seconds=60)
            os.kill(_worker_of(server), signal.SIGKILL)
            wait_until(lambda: "was killed by signal 9" in server.log(), "the server has seen it")
            wait_until(lambda: _stored(api, address) > 0, "it is storing again", seconds=60)
        # then the server itself is killed: the next one begins it again
        server.kill()
        server.start()
        with server.http("ann") as api, server.http() as operator:
            done = over(api, address)
            assert done["state"] == "ready", done
            assert api.get("/datasets/large").json()["versions"] == 1
            # and once more, with a collection under way after the dataset is gone
            api.post("/datasets", json={"name": "other"}).raise_for_status()
            second = api.post("/datasets/other/commits", json={"from": {"job": job}}).json()["id"]
            assert over(api, f"/datasets/other/commits/{second}")["result"]["new_bytes"] < LARGE_BYTES / 100
            assert api.delete("/datasets/large").status_code == 204
            body = {"dry_run": False, "grace_seconds": 0}
            collection = operator.post("/dataset-targets/default/collections", json=body).json()["id"]
        server.kill()
        server.start()
        with server.http("ann") as api, server.http() as operator:
            found = over(operator, f"/dataset-targets/default/collections/{collection}")
            assert found["state"] == "ready", found
            # what the other dataset needs is all there
            checked = api.post("/datasets/other/versions/latest/verify").json()["id"]
            assert over(api, f"/datasets/other/commits/{checked}")["result"]["ok"] is True


def _stored(api: httpx.Client, address: str) -> int:
    """How many bytes it has worked on so far; a very fast one may be over already."""
    found = api.get(address).json()
    return int(found["progress"]["done_bytes"]) if found["progress"] else int(found["state"] == "ready")


def _worker_of(server: CorralServer) -> int:
    """The process that carries out an operation, found as the server's child."""
    assert server.process is not None
    words = subprocess.run(
        ["ps", "-ww", "--ppid", str(server.process.pid), "-o", "pid=,args="], capture_output=True, text=True, check=True
    ).stdout
    (line,) = [line for line in words.splitlines() if "operation_process" in line]
    return int(line.split()[0])


def test_a_laptop_that_is_switched_off_goes_on_later(
    server: CorralServer, ann: Person, api: httpx.Client, tmp_path: Path
) -> None:
    source = tmp_path / "large"
    source.mkdir()
    (source / "large.bin").write_bytes(os.urandom(100 << 20))
    ann.ok("dataset", "create", "sent")
    packs = server.home / "datasets" / "packs"
    before = _bytes_in(packs)
    sending = ann.start("dataset", "commit", "sent", str(source))
    wait_until(lambda: _bytes_in(packs) > before + (30 << 20), "a pack has arrived")
    sending.kill()
    sending.communicate()
    assert api.get("/datasets/sent").json()["versions"] == 0
    made = ann.read("dataset", "commit", "sent", str(source))
    assert made["bytes"] == 100 << 20
    # what had arrived was not sent again
    assert _bytes_in(packs) - before < 110 << 20

    copy = tmp_path / "copy"
    fetching = ann.start("dataset", "checkout", "sent", str(copy))
    wait_until(lambda: (tmp_path / ".copy.checkout").exists(), "it has begun")
    fetching.kill()
    fetching.communicate()
    ann.ok("dataset", "checkout", "sent", str(copy))
    assert (copy / "large.bin").read_bytes() == (source / "large.bin").read_bytes()
    assert not (tmp_path / ".copy.checkout").exists()


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def test_targets_are_listed_tested_and_kept_while_they_are_needed(server: CorralServer, tmp_path: Path) -> None:
    operator = at_a_shell(server, "operator")
    place = tmp_path / "place"
    operator.ok("target", "create", "disk", "--directory", str(place))
    assert operator.read("target", "test", "disk")["ok"] is True
    operator.ok("dataset", "create", "kept", "--target", "disk")
    operator.ok("dataset", "commit", "kept", str(fill(tmp_path / "kept", 2)))
    assert list((place / "packs").rglob("*"))
    assert "kept" in refused(operator, "target", "rm", "disk", "-y")
    dry = operator.read("dataset", "gc", "--target", "disk", "--grace", "0s")["result"]
    assert (dry["dry_run"], dry["garbage_packs"]) == (True, 0)
    operator.ok("dataset", "rm", "kept", "-y")
    gone = operator.read("dataset", "gc", "--target", "disk", "--grace", "0s", "--yes")["result"]
    assert gone["removed_packs"] == dry["packs"]
    operator.ok("target", "rm", "disk", "-y")
    assert [view["name"] for view in operator.read("target", "ls")["items"]] == ["default"]
