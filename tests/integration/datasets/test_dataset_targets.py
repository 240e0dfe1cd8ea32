"""Datasets whose history is in a real Git repository, and whose bytes are in a real S3 server."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, dump, problem
from tests.integration.datasets.test_datasets import at_a_shell, ended, fill, over, refused, submit
from tests.integration.waiting import wait_until
from tests.servers.s3_server import ACCESS_KEY, SECRET, s3_serving

pytestmark = pytest.mark.slow

TOKEN = "glpat-a-secret-token"


def git(repository: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *args], capture_output=True, text=True, check=True)
    return done.stdout


def settled(api: httpx.Client, dataset: str) -> dict[str, Any]:
    """The dataset, when nothing is being done with it."""

    def is_over() -> bool:
        return all(
            one["state"] in ("ready", "failed") for one in api.get(f"/datasets/{dataset}/commits").json()["items"]
        )

    wait_until(is_over, f"nothing is done with {dataset}", seconds=60)
    found: dict[str, Any] = api.get(f"/datasets/{dataset}").json()
    return found


def test_a_history_in_git_is_read_with_plain_git_and_by_another_corral(tmp_path: Path) -> None:
    repository = tmp_path / "sets.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repository)], check=True)
    url, place = f"file://{repository}", tmp_path / "place"
    source = fill(tmp_path / "digits", 5)
    create = ("target", "create", "forge", "--git", url, "--directory", str(place), "--token-stdin")
    with api_server() as server:
        operator = at_a_shell(server, "operator")
        operator.ok(*create, stdin=f"{TOKEN}\n")
        assert "1 dataset" not in operator.read("target", "test", "forge")["detail"]
        operator.ok("dataset", "create", "digits", "--target", "forge")
        first = operator.read("dataset", "commit", "digits", str(source), "-m", "first import", "--tag", "v1")
        (source / "train" / "000.txt").write_text("corrected\n")
        second = operator.read("dataset", "commit", "digits", str(source), "-m", "corrected labels")
        # plain git shows the same history
        assert git(repository, "log", "--format=%s", "main").split("\n")[:2] == ["corrected labels", "first import"]
        assert git(repository, "tag").strip() == "operator/digits/v1"
        shown = git(repository, "show", "main:operator/digits/files.txt")
        assert "train/000.txt" in shown
        assert second["id"] in git(repository, "show", "main:operator/digits/dataset.yaml")
        # the token is stored nowhere in plain text
        with server.http() as api:
            seen = api.get("/dataset-targets/forge").text + api.get("/events?limit=500").text
            assert api.get("/dataset-targets/forge").json()["metadata"]["has_token"] is True
            assert problem(api.patch("/dataset-targets/forge", json={"url": "file:///elsewhere.git"}), 409)
        assert TOKEN not in seen + server.log() + dump(server)
    # another corral over the same repository and storage finds everything
    with api_server() as server, server.http() as api:
        operator = at_a_shell(server, "operator")
        operator.ok(*create, stdin=f"{TOKEN}\n")
        operator.ok("dataset", "create", "digits", "--target", "forge")
        found = settled(api, "digits")
        assert (found["versions"], found["latest"]["id"], found["tags"]) == (2, second["id"], {"v1": first["id"]})
        operator.ok("dataset", "checkout", "digits@v1", str(tmp_path / "copy"))
        assert (tmp_path / "copy" / "train" / "000.txt").read_text() != "corrected\n"
        # what was put there without it is pulled, and a tag that is taken away there goes here, too
        git(repository, "tag", "-d", "operator/digits/v1")
        pulled = api.post("/datasets/digits/pull").json()["id"]
        assert over(api, f"/datasets/digits/commits/{pulled}")["state"] == "ready"
        assert api.get("/datasets/digits").json()["tags"] == {}
        # collected garbage leaves what Git's history needs
        gone = operator.read("dataset", "gc", "--target", "forge", "--grace", "0s", "--yes")["result"]
        assert gone["garbage_packs"] == 0
        operator.ok("dataset", "rm", "digits", "-y")
        assert "operator/digits" not in git(repository, "ls-tree", "-r", "--name-only", "main")


def test_an_unreachable_repository_is_reported_without_the_token(tmp_path: Path) -> None:
    with api_server() as server:
        operator = at_a_shell(server, "operator")
        gone = f"file://{tmp_path / 'nowhere.git'}"
        create = ("target", "create", "lost", "--git", gone, "--directory", str(tmp_path / "place"), "--token-stdin")
        operator.ok(*create, stdin=f"{TOKEN}\n")
        assert "nowhere.git" in refused(operator, "target", "test", "lost")
        operator.ok("dataset", "create", "digits", "--target", "lost")
        said = refused(operator, "dataset", "commit", "digits", str(fill(tmp_path / "digits", 2)))
        assert "nowhere.git" in said
        assert TOKEN not in said + server.log() + dump(server)


def test_bytes_in_a_bucket_reach_jobs_and_laptops(tmp_path: Path) -> None:
    with s3_serving(tmp_path / "s3") as s3, api_server(users=("ann",)) as server:
        bucket = s3.make_bucket("sets")
        store = {
            "name": "minio",
            "kind": "s3",
            "bucket": "sets",
            "endpoint": s3.url,
            "access_key": ACCESS_KEY,
            "secret": SECRET,
        }
        target = {"name": "bucket", "storage": {"kind": "object", "object_store": "minio", "prefix": "datasets"}}
        with server.http() as operator:
            operator.post("/object-stores", json=store).raise_for_status()
            assert "allow writing" in problem(operator.post("/dataset-targets", json=target), 422)["detail"]
            operator.patch("/object-stores/minio", json={"allow_write": True}).raise_for_status()
            operator.post("/dataset-targets", json=target).raise_for_status()
            tested = operator.post("/dataset-targets/bucket/test", timeout=60).json()
            assert tested["ok"] is True, tested
            assert "bucket" in problem(operator.delete("/object-stores/minio"), 409)["detail"]
        ann = at_a_shell(server, "ann")
        source = fill(tmp_path / "digits", 5)
        ann.ok("dataset", "create", "digits", "--target", "bucket")
        ann.ok("dataset", "commit", "digits", str(source), "-m", "first")
        assert any(path.is_file() for path in (bucket / "datasets" / "packs").rglob("*"))
        with server.http("ann") as api:
            job = submit(api, 'head -1 "$CORRAL_MOUNT_DIGITS/train/003.txt"', mounts=["dataset:digits:/data"])
            assert ended(api, job)["state"] == "completed", api.get(f"/jobs/{job}/attempts").text
            assert "sample 3" in api.get(f"/jobs/{job}/logs").text
        ann.ok("dataset", "checkout", "digits", str(tmp_path / "copy"))
        assert subprocess.run(["diff", "-r", str(source), str(tmp_path / "copy")], check=False).returncode == 0
        assert SECRET not in server.log() + dump(server)
