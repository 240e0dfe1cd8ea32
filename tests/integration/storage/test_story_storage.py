"""Volumes from their making to their end, with a real server, real jobs and a crash in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.objects.access import ObjectAccess
from corral.objects.bucket_mounts import fuse_problem
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.s3_server import SECRET, S3Server

pytest_plugins = ("tests.servers.fixtures",)

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    home = tmp_path_factory.mktemp("storage") / "home"
    home.mkdir()
    (home / "corral.yaml").write_text("monitoring: {interval_seconds: 1}\n")
    server = CorralServer(home, "--virtual-gpus", "2xA100-80G", "--config", str(home / "corral.yaml"))
    server.start()
    yield server
    server.kill()


def ask(server: CorralServer, method: str, path: str, body: Any = None) -> Any:
    with server.http() as http:
        answer = http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def submit(server: CorralServer, text: str, *mounts: str) -> str:
    body = {"command": ["/bin/sh", "-c", text], "mounts": list(mounts), "gpus": 0}
    return str(ask(server, "POST", "/jobs", body)["id"])


def ended(server: CorralServer, job: str) -> str:
    """The output of the job, once it has completed."""
    wait_until(lambda: ask(server, "GET", f"/jobs/{job}")["state"] in ("completed", "failed"), f"the end of {job}")
    with server.http() as http:
        output = http.get(f"/jobs/{job}/logs").text
    view = ask(server, "GET", f"/jobs/{job}")
    assert view["state"] == "completed", (view, output)
    return output


def volume(server: CorralServer, name: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(server, "GET", f"/volumes/{name}")
    return found


def make(server: CorralServer, name: str, kind: str = "filesystem", size: str = "64MiB") -> Path:
    """Ready to be mounted; its directory."""
    ask(server, "POST", "/volumes", {"name": name, "type": kind, "size": size})
    wait_until(lambda: volume(server, name)["state"] == "ready", f"volume {name} is made")
    return server.home / "volumes" / volume(server, name)["id"] / "data"


def test_files_of_a_job_are_read_by_another_and_their_size_is_measured(server: CorralServer) -> None:
    directory = make(server, "results")
    ended(server, submit(server, "head -c 3000000 /dev/zero > $CORRAL_MOUNT_RESULTS/weights", "results:/data/results"))
    assert (directory / "weights").stat().st_size == 3_000_000
    wait_until(lambda: (volume(server, "results")["used_bytes"] or 0) >= 3_000_000, "its use is measured")
    assert "3000000" in ended(
        server, submit(server, "wc -c < $CORRAL_MOUNT_RESULTS/weights", "results:/data/results:ro")
    )


def test_a_full_volume_holds_those_who_write_and_says_so(server: CorralServer) -> None:
    make(server, "small", size="1MiB")
    ended(server, submit(server, "head -c 2000000 /dev/zero > $CORRAL_MOUNT_SMALL/x", "small:/data/small"))
    wait_until(lambda: volume(server, "small")["full"] is True, "it is full")
    held = submit(server, "true", "small:/data/small")
    ended(server, submit(server, "true", "small:/data/small:ro"))
    assert ask(server, "GET", f"/jobs/{held}")["state"] == "queued"
    events = ask(server, "GET", "/events?limit=100")["items"]
    assert "volume.full" in [event["action"] for event in events]

    def alerts() -> dict[str, Any]:
        found = ask(server, "GET", "/alerts?state=firing")["items"]
        return {alert["rule"]: alert for alert in found if alert["scope"] == "volume"}

    wait_until(lambda: alerts().keys() == {"volume-nearly-full", "volume-full"}, "both alerts fire")
    reported, number = alerts()["volume-full"], volume(server, "small")["id"]
    assert (reported["subject"], reported["owner"], reported["severity"], reported["state"]) == (
        number,
        "operator",
        "warning",
        "firing",
    )
    assert reported["text"].startswith(f"volume small ({number}) of operator is 191 % full: ")
    for rule in ("volume-nearly-full", "volume-full"):
        ask(server, "PATCH", f"/alert-rules/{rule}", {"clear_seconds": 0})
    ask(server, "PATCH", "/volumes/small", {"size": "16MiB"})
    ended(server, held)
    wait_until(lambda: not alerts(), "there is room again")


def test_deleting_removes_the_files_and_then_the_name(server: CorralServer) -> None:
    directory = make(server, "short-lived")
    (directory / "file").write_text("x")
    ask(server, "DELETE", "/volumes/short-lived")
    with server.http() as http:
        wait_until(lambda: http.get("/volumes/short-lived").status_code == 404, "its name is free")
    assert not directory.parent.exists()


def test_a_crash_costs_nothing_and_strangers_are_left_alone(server: CorralServer) -> None:
    kept, lost = make(server, "kept"), make(server, "lost")
    (kept / "precious").write_text("x")
    server.kill()
    shutil.rmtree(lost.parent)
    stranger = server.home / "volumes" / "v-900" / "data"
    stranger.mkdir(parents=True)
    (stranger / "precious").write_text("x")
    server.start()
    assert (kept / "precious").read_text() == "x"
    wait_until(lost.is_dir, "the lost directory is made again")
    assert (stranger / "precious").read_text() == "x"
    assert "1 volumes have files and no row" in server.log()
    assert ended(server, submit(server, "ls $CORRAL_MOUNT_KEPT", "kept:/data/kept")).strip() == "precious"


def test_local_storage_goes_with_its_attempt(server: CorralServer) -> None:
    text = "df -h $CORRAL_MOUNT_LOCAL >/dev/null && touch $CORRAL_MOUNT_LOCAL/x && ls $CORRAL_MOUNT_LOCAL"
    assert ended(server, submit(server, text, "local:1GiB:/data/fast")).strip() == "x"
    wait_until(lambda: not any((server.home / "scratch").iterdir()), "it is removed")


def store_of(server: CorralServer, access: ObjectAccess, name: str, *, allow_write: bool) -> None:
    body: dict[str, Any] = {"name": name, "kind": access.kind, "bucket": access.bucket, "prefix": access.prefix}
    body |= {"endpoint": access.endpoint, "access_key": access.access_key, "secret": access.secret}
    ask(server, "POST", "/object-stores", {**body, "allow_write": allow_write})
    ask(server, "POST", "/volumes", {"name": name, "type": "object", "object_store": name})


@pytest.mark.skipif(bool(fuse_problem()), reason=f"FUSE: {fuse_problem()}")
def test_a_bucket_is_a_directory_for_jobs_and_is_written_where_that_is_allowed(
    server: CorralServer, s3_server: S3Server
) -> None:
    access = s3_server.access("story", "sets")
    bucket = s3_server.make_bucket("story") / "sets"
    (bucket / "train").mkdir(parents=True)
    (bucket / "train" / "0001").write_text("first words\n")
    store_of(server, access, "readable", allow_write=False)
    store_of(server, access, "writable", allow_write=True)
    reading = submit(server, "cat $CORRAL_MOUNT_READABLE/train/0001", "readable:/data/set")
    writing = submit(server, "cd $CORRAL_MOUNT_WRITABLE && cp train/0001 copy", "writable:/data/set:rw")
    assert ended(server, reading) == "first words\n"
    ended(server, writing)
    assert (bucket / "copy").read_text() == "first words\n"
    assert s3_secret_is_nowhere(server)
    keepers = server.home / "objects"
    wait_until(lambda: not any(os.path.ismount(place) for place in keepers.glob("*/mount")), "no bucket stays mounted")


def s3_secret_is_nowhere(server: CorralServer) -> bool:
    """Neither in a log nor in a file of a job."""
    places = [server.home / "server.log", *(server.home / "local").rglob("*"), *(server.home / "objects").glob("*/log")]
    return not any(SECRET.encode() in place.read_bytes() for place in places if place.is_file())
