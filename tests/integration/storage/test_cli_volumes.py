"""Volumes, object stores and mounts at the command line, with jobs that really read and write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api import dump
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.s3_server import ACCESS_KEY, SECRET, s3_serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    with cli_server(tmp_path_factory.mktemp("cli-volumes"), "--virtual-gpus", "4xA100-80G") as started:
        yield started


@pytest.fixture(scope="module")
def operator(server: CorralServer) -> Person:
    return operator_of(server)


@pytest.fixture(scope="module")
def nina(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "nina")


@pytest.fixture(scope="module")
def omar(server: CorralServer, operator: Person) -> Person:
    return scientist(server, operator, "omar")


def make(person: Person, name: str, *flags: str) -> None:
    person.ok("volume", "create", name, *flags)
    wait_until(lambda: person.read("volume", "show", name)["state"] == "ready", f"{name} is made")


def test_second_job_reads_the_files_of_the_first_and_a_third_waits_for_its_turn(nina: Person, omar: Person) -> None:
    make(nina, "data", "--type", "block", "--size", "10MiB")
    write = nina.submit("--mount", "data:/data", "--", "sh", "-c", 'echo hello > "$CORRAL_MOUNT_DATA/word"')
    nina.wait_for(write, "completed")
    shown = nina.read("show", write)["mounts"]
    assert [(one["kind"], one["source"], one["path"], one["mode"]) for one in shown] == [
        ("volume", "data", "/data", "rw")
    ]
    assert "data:/data:rw" in nina.ok("show", write)
    assert "there is no volume 'nina/data'" in omar.run("submit", "--mount", "nina/data:/d", "--", "true", code=2).err
    assert "shared with omar (ro)" in nina.ok("volume", "share", "data", "--user", "omar")
    read = omar.submit("--mount", "nina/data:/d", "--", "sh", "-c", 'cat "$CORRAL_MOUNT_DATA/word"; sleep 300')
    omar.wait_for(read, "running")
    wait_until(lambda: omar.ok("logs", read) == "hello\n", "it has read what the other wrote")
    refused = omar.run("submit", "--mount", "data:/d:rw", "--", "true", code=3).err
    assert "shared with omar to read only" in refused

    waits = nina.submit("--name", "writer", "--mount", "data:/data", "--", "true")
    [reason] = nina.read("why", waits)["reasons"]
    assert (reason["rule"], reason["jobs"]) == ("mount", [])
    assert reason["detail"] == "volume data is read by a job of omar, and this job would write to it"
    by = omar.read("volume", "show", "data")["jobs"]
    assert [(one["id"], one["mode"], one["path"]) for one in by] == [(read, "ro", "/d")]
    assert f"mounted by {read} " in nina.run("volume", "rm", "data", "-y", code=1).err
    omar.ok("stop", read)
    nina.wait_for(waits, "completed")


def test_sharing_resizing_and_removing(nina: Person, omar: Person, operator: Person) -> None:
    make(nina, "shared", "--size", "1MiB")
    nina.ok("volume", "share", "shared", "--user", "omar", "--write")
    nina.ok("volume", "share", "shared", "--group", "default")
    assert [one["name"] for one in nina.read("volume", "show", "shared")["shares"]] == ["default", "omar"]
    assert omar.read("volume", "show", "shared")["shares"] == [], "with whom else is not theirs to know"
    nina.ok("volume", "unshare", "shared", "--user", "omar")
    assert "not shared with omar" in nina.run("volume", "unshare", "shared", "--user", "omar", code=2).err
    assert not omar.read("volume", "show", "shared")["may_write"]
    nina.ok("volume", "unshare", "shared", "--all")
    assert omar.run("volume", "show", "shared", code=4)
    assert "may hold 2 MiB" in nina.ok("volume", "resize", "shared", "2MiB").replace("2MiB", "2 MiB")
    assert "only grows" in nina.run("volume", "resize", "shared", "1MiB", code=2).err
    nina.ok("volume", "edit", "shared", "--description", "For the group")
    assert nina.read("volume", "show", "shared")["description"] == "For the group"
    operator.ok("quota", "set", "nina", "--volume", "filesystem=3MiB")
    reported = nina.run("volume", "create", "more", "--size", "2MiB", "-o", "json", code=1).problem
    assert (reported["asked"], reported["held"], reported["limit"]) == (2 << 20, 2 << 20, 3 << 20)
    rows = nina.ok("volume", "ls", "--mine").splitlines()
    assert rows[0].split()[:4] == ["ID", "NAME", "OWNER", "TYPE"]
    nina.ok("volume", "rm", "shared", "-y")
    wait_until(lambda: nina.run("volume", "show", "shared").code == 4, "it is gone with its files")


def test_mounts_of_files_clones_workbenches_and_presets(nina: Person, tmp_path: Path) -> None:
    make(nina, "models", "--size", "1MiB")
    file = tmp_path / "job.yaml"
    file.write_text("name: from-file\nmount: [models:/models, 'local:1MiB:/scratch']\ncommand: [sleep, '300']\n")
    job = nina.submit("-f", str(file), "--hold")
    assert [one["path"] for one in nina.read("show", job)["mounts"]] == ["/models", "/scratch"]
    clone = nina.read("clone", job, "--hold")
    assert [(one["source"], one["mode"]) for one in clone["mounts"]] == [("models", "rw"), ("1MiB", "rw")]
    assert nina.read("clone", job, "--hold", "--mount", "none")["mounts"] == []
    other = nina.read("clone", job, "--hold", "--mount", "models:/m:ro")["mounts"]
    assert [(one["path"], one["mode"]) for one in other] == [("/m", "ro")]
    bench = nina.read("workbench", "create", "bench", "--mount", "models:/models:ro", "--hold")
    assert bench["job"]["mounts"][0]["volume_id"] == clone["mounts"][0]["volume_id"]
    preset = nina.read("preset", "run", "classification", "--mount", "models:/models", "--hold")
    assert preset["mounts"][0]["path"] == "/models"
    file.write_text("mount: models\ncommand: ['true']\n")
    assert f"{file}:1: mounts" in nina.run("submit", "-f", str(file), code=2).err
    assert "--mount" in nina.run("submit", "--mount", "models:/proc", "--", "true", code=2).err
    plan = nina.run("submit", "--mount", "nothing:/x", "--dry-run", "--", "true", code=2)
    assert "there is no volume 'nothing'" in plan.err


def test_object_stores_are_the_operators_and_their_secrets_nobodys(
    server: CorralServer, operator: Person, nina: Person
) -> None:
    flags = ("--bucket", "lab-data", "--endpoint", "http://127.0.0.1:9", "--access-key", "AKX", "--secret-stdin")
    operator.ok("object-store", "create", "lab", *flags, stdin="a-great-secret\n")
    reported = operator.read("object-store", "show", "lab")
    assert (reported["access_key"], reported["has_secret"], "secret" in reported) == ("AKX", True, False)
    assert "a-great-secret" not in dump(server) + server.log() + operator.ok("events", "--limit", "50")
    seen = nina.read("object-store", "show", "lab")
    assert (seen["bucket"], seen["endpoint"], seen["access_key"]) == ("lab-data", None, "")
    assert nina.run("object-store", "create", "mine", "--bucket", "mine", code=3)
    assert "failed: " in operator.run("object-store", "test", "lab", code=1).out
    assert nina.run("object-store", "test", "lab", code=3)

    nina.ok("volume", "create", "images", "--type", "object", "--object-store", "lab", "--prefix", "train/")
    shown = nina.read("volume", "show", "images")
    assert (shown["state"], shown["read_only"], shown["prefix"]) == ("ready", True, "train")
    assert "does not allow writing" in nina.run("submit", "--mount", "images:/i:rw", "--", "true", code=3).err
    assert "1 volume is a part of" in operator.run("object-store", "rm", "lab", "-y", code=1).err
    operator.ok("object-store", "edit", "lab", "--allow-write")
    assert nina.read("volume", "show", "images")["may_write"]
    assert nina.read("search", "images")["items"][0]["type"] == "volume"
    nina.ok("volume", "rm", "images", "-y")
    operator.ok("object-store", "rm", "lab", "-y")
    assert operator.read("object-store", "ls")["items"] == []


def test_a_real_bucket_answers_and_refuses_a_wrong_secret(operator: Person, tmp_path: Path) -> None:
    with s3_serving(tmp_path) as s3:
        bucket = s3.make_bucket("photos")
        (bucket / "train" / "cats").mkdir(parents=True)
        (bucket / "train" / "cats" / "tom.txt").write_text("miaow\n")
        flags = ("--bucket", "photos", "--prefix", "train", "--endpoint", s3.url, "--access-key", ACCESS_KEY)
        operator.ok("object-store", "create", "photos", *flags, "--secret-stdin", stdin=SECRET)
        assert "ok: photos/train can be read: 1 entry" in operator.ok("object-store", "test", "photos")
        operator.ok("object-store", "edit", "photos", "--access-key", ACCESS_KEY, "--secret-stdin", stdin="wrong")
        assert operator.run("object-store", "test", "photos", code=1).out.startswith("failed: ")
