"""Presets, logs and files on a real server, from the API and from the command line."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api import api_server, problem
from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer

pytestmark = pytest.mark.slow

ENDED = ("completed", "failed", "stopped")


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    with api_server("--virtual-nodes", "2x4xA100-80G", users=("ann", "bob")) as running:
        yield running


@pytest.fixture
def ann(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http("ann") as http:
        yield http


def ended(http: httpx.Client, job: str) -> dict[str, Any]:
    seen: list[dict[str, Any]] = []

    def over() -> bool:
        seen.append(http.get(f"/jobs/{job}").json())
        return seen[-1]["state"] in ENDED

    # Without NumPy a training computes in plain Python.
    wait_until(over, f"{job} ends", 240)
    return seen[-1]


def shell(http: httpx.Client, script: str, **fields: Any) -> str:
    body = {"command": ["/bin/sh", "-c", script], **fields}
    answer = http.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def content(http: httpx.Client, job: str, path: str, **headers: str) -> httpx.Response:
    return http.get(f"/jobs/{job}/files/content", params={"path": path}, headers=headers)


def metrics(http: httpx.Client, job: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content(http, job, "metrics.json").text)
    return found


# ---------------------------------------------------------------- presets


def test_the_shipped_presets_learn_with_their_defaults(ann: httpx.Client) -> None:
    jobs = {}
    for name in ("classification", "detection"):
        made = ann.post(f"/presets/{name}/run", json={"name": f"try-{name}"})
        assert made.status_code == 201, made.text
        jobs[name] = made.json()["id"]
        assert (made.json()["kind"], made.json()["preset"], made.json()["gpus"]) == ("preset", name, 1)
        assert made.json()["parameters"]["precision"] == "fp32"
    for name, job in jobs.items():
        assert ended(ann, job)["state"] == "completed", ann.get(f"/jobs/{job}/logs").text
        assert {item["name"] for item in ann.get(f"/jobs/{job}/files").json()["items"]} == {
            "metrics.json",
            "model.json",
        }, name
    assert metrics(ann, jobs["classification"])["accuracy"] >= 0.95
    assert metrics(ann, jobs["detection"])["iou"] >= 0.6
    assert metrics(ann, jobs["detection"])["found"] >= 0.8


def test_a_stopped_preset_goes_on_and_ends_as_an_undisturbed_one(ann: httpx.Client) -> None:
    values = {"epochs": 600, "images": 100}
    whole = ann.post("/jobs", json={"preset": "classification", "parameters": values, "gpus": 0}).json()["id"]
    halved = ann.post("/jobs", json={"preset": "classification", "parameters": values, "gpus": 0}).json()["id"]

    def has_begun() -> bool:
        return bool(ann.get(f"/jobs/{halved}/logs/search", params={"q": "epoch 5/"}).json()["items"])

    wait_until(has_begun, "it has seen five epochs")
    ann.post(f"/jobs/{halved}/stop").raise_for_status()
    assert ended(ann, halved)["state"] == "stopped"
    ann.post(f"/jobs/{halved}/start").raise_for_status()
    assert ended(ann, halved)["state"] == "completed"
    again = ann.get(f"/jobs/{halved}/logs").text
    assert "resumed after" in again
    assert "epoch 1/600" not in again
    assert ended(ann, whole)["state"] == "completed"
    assert metrics(ann, halved) == metrics(ann, whole)


def test_operators_add_presets_and_everybody_runs_them(server: CorralServer, ann: httpx.Client) -> None:
    yaml = """\
name: count
title: Counting
parameters:
  - {name: upto, type: int, min: 1, max: 99, default: 3}
  - {name: word, type: text}
request: {cpus: 1, time: 10m}
command: [/bin/sh, -c, 'for n in $(seq "$1"); do echo "$2 $n on {gpu_count} GPUs"; done', sh, "{upto}", "{word}"]
env: {WORD: "w-{word}"}
"""
    with server.http() as operator:
        reported = problem(operator.post("/presets", json={"yaml": yaml.replace("default: 3", "default: 0")}), 422)
        assert reported["errors"] == [
            {"field": "yaml", "message": "line 4: parameters[0].default: must be at least 1, got 0"}
        ]
        assert operator.post("/presets", json={"yaml": yaml}).status_code == 201
        problem(operator.post("/presets", json={"yaml": yaml}), 409)
        assert operator.post("/presets", json={"yaml": yaml, "replace": True}).status_code == 201
        assert ann.get("/presets/count").json()["yaml"] == yaml
        assert [item["name"] for item in ann.get("/presets").json()["items"]] == [
            "classification",
            "classifier",
            "count",
            "detection",
            "detector",
        ]
        word = "it's; $(touch /tmp/owned) `x` {upto}"
        body = {"parameters": {"word": word, "upto": "2"}, "overrides": {"gpus": 2, "env": {"MORE": "1"}}}
        job = ann.post("/presets/count/run", json=body).json()
        assert (job["gpus"], job["cpus"], job["time_limit_seconds"]) == (2, 1, 600)
        assert job["env"] == {"WORD": f"w-{word}", "MORE": "1"}
        assert job["parameters"] == {"upto": "2", "word": word}
        assert ended(ann, job["id"])["state"] == "completed"
        assert ann.get(f"/jobs/{job['id']}/logs").text == f"{word} 1 on 2 GPUs\n{word} 2 on 2 GPUs\n"
        assert operator.delete("/presets/count").status_code == 204
        problem(ann.get("/presets/count"), 404)
        # What was made from it stays as it was.
        ann.post(f"/jobs/{job['id']}/start").raise_for_status()
        assert ended(ann, job["id"])["state"] == "completed"
        actions = [item["action"] for item in operator.get("/events?subject=count").json()["items"]]
        assert actions == ["preset.removed", "preset.replaced", "preset.added"]


# ---------------------------------------------------------------- logs


def test_logs_of_every_attempt_and_rank_are_searched_and_saved(ann: httpx.Client) -> None:
    script = 'echo "attempt $CORRAL_ATTEMPT rank $CORRAL_RANK"; seq 5; echo "Last LINE $CORRAL_RANK"'
    job = shell(ann, script, nodes=2, name="two-runs")
    assert ended(ann, job)["state"] == "completed"
    ann.post(f"/jobs/{job}/start").raise_for_status()
    assert ended(ann, job)["attempt"] == 2

    def search(**params: Any) -> list[tuple[int, int, int, str]]:
        answer = ann.get(f"/jobs/{job}/logs/search", params=params)
        assert answer.status_code == 200, answer.text
        return [(item["attempt"], item["rank"], item["line"], item["text"]) for item in answer.json()["items"]]

    assert search(q="line") == []
    assert search(q="line", ignore_case=True) == [(2, 0, 7, "Last LINE 0")]
    assert search(q="attempt", attempt="all", rank="all") == [
        (attempt, rank, 1, f"attempt {attempt} rank {rank}") for attempt in (1, 2) for rank in (0, 1)
    ]
    assert search(q=r"^\d$", regex=True, attempt="1", limit=2) == [(1, 0, 2, "1"), (1, 0, 3, "2")]
    reported = problem(ann.get(f"/jobs/{job}/logs/search", params={"q": "(", "regex": True}), 422)
    assert reported["errors"][0]["field"] == "q"

    one = ann.get(f"/jobs/{job}/logs/download?attempt=1")
    assert one.text == ann.get(f"/jobs/{job}/logs?attempt=1").text
    assert one.headers["content-disposition"] == "attachment; filename*=UTF-8''two-runs-attempt-1-rank-0.log"
    every = ann.get(f"/jobs/{job}/logs/download?attempt=all&rank=all")
    with tarfile.open(fileobj=io.BytesIO(every.content)) as archive:
        logs = {name: archive.extractfile(name) for name in archive.getnames()}
        assert {name: file.read().decode() for name, file in logs.items() if file is not None} == {
            f"two-runs-logs/two-runs-attempt-{attempt}-rank-{rank}.log": ann.get(
                f"/jobs/{job}/logs?attempt={attempt}&rank={rank}"
            ).text
            for attempt in (1, 2)
            for rank in (0, 1)
        }


def test_a_search_of_a_long_log_is_bounded_and_complete(ann: httpx.Client) -> None:
    job = shell(ann, "seq 900000 | sed 's/^/a line of some length with the number /'")
    assert ended(ann, job)["state"] == "completed"
    found, cursor, pages = [], None, 0
    while True:
        answer = ann.get(
            f"/jobs/{job}/logs/search",
            params={"q": "number 8999", "cursor": cursor or "", "limit": 500}
            if cursor
            else {"q": "number 8999", "limit": 500},
        ).json()
        found += [item["line"] for item in answer["items"]]
        cursor, pages = answer["next_cursor"], pages + 1
        if cursor is None:
            break
    expected = [number for number in range(1, 900001) if str(number).startswith("8999")]
    assert found == expected
    assert pages > 1


# ---------------------------------------------------------------- files


def test_files_while_the_job_runs_and_after(server: CorralServer, ann: httpx.Client) -> None:
    script = """
        cd "$CORRAL_OUTPUT_DIR" && mkdir -p plots/deep && echo '<script>alert(1)</script>' > page.html
        echo deep > plots/deep/x.txt; head -c 5000000 /dev/urandom > large.bin; ln -s plots/deep latest
        ln -s /etc/passwd out; ln -s ../../../../corral.db database; ln -s .. up; mkfifo pipe; touch done
        while [ ! -e "$CORRAL_JOB_DIR/go" ]; do sleep 0.05; done; rm done
    """
    job = shell(ann, script, name="writes-files")

    def names() -> dict[str, str]:
        items = ann.get(f"/jobs/{job}/files", params={"limit": 500}).json()["items"]
        return {item["name"]: item["kind"] for item in items}

    wait_until(lambda: "done" in names(), "it has written")
    assert names() == {
        "database": "link",
        "done": "file",
        "large.bin": "file",
        "latest": "directory",
        "out": "link",
        "page.html": "file",
        "pipe": "other",
        "plots": "directory",
        "up": "link",
    }
    for path in ("out", "database", "up", "up/checkpoints", "pipe"):
        assert problem(content(ann, job, path), 403)["errors"][0]["field"] == "path"
    page = content(ann, job, "page.html")
    assert page.text == "<script>alert(1)</script>\n"
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert content(ann, job, "latest/x.txt").text == "deep\n"

    whole = content(ann, job, "large.bin")
    assert len(whole.content) == 5_000_000
    part = content(ann, job, "large.bin", Range="bytes=1000-1999")
    assert (part.status_code, part.headers["content-range"]) == (206, "bytes 1000-1999/5000000")
    assert part.content == whole.content[1000:2000]
    assert content(ann, job, "large.bin", **{"Range": "bytes=0-9", "If-Range": '"other"'}).status_code == 200
    problem(content(ann, job, "large.bin", Range="bytes=5000000-"), 416)

    first = ann.get(f"/jobs/{job}/files", params={"limit": 4}).json()
    rest = ann.get(f"/jobs/{job}/files", params={"limit": 400, "cursor": first["next_cursor"]}).json()
    assert [item["name"] for item in first["items"] + rest["items"]] == sorted(names())

    with server.http("bob") as bob, server.http() as operator:
        for path in ("/files", "/files/content?path=page.html", "/logs/search?q=x", "/logs/download"):
            problem(bob.get(f"/jobs/{job}{path}"), 404)
            assert operator.get(f"/jobs/{job}{path}").status_code == 200
        everyone = operator.get("/permission-groups/everyone").json()["functions"]
        operator.post("/permission-groups", json={"name": "curious", "functions": [*everyone, "see-others-jobs"]})
        operator.post("/permission-groups/curious/users", json={"users": ["bob"]}).raise_for_status()
        assert bob.get(f"/jobs/{job}").status_code == 200
        for path in ("/files", "/files/content?path=page.html", "/logs/search?q=x", "/logs/download"):
            problem(bob.get(f"/jobs/{job}{path}"), 404)

    (next((server.home / "jobs").glob(f"*/{job}")) / "go").touch()
    assert ended(ann, job)["state"] == "completed"
    assert "done" not in names()
    everything = ann.get(f"/jobs/{job}/files/content")
    assert everything.headers["content-disposition"] == "attachment; filename*=UTF-8''writes-files-outputs.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(everything.content)) as archive:
        assert sorted(archive.getnames()) == [
            "large.bin",
            "latest",
            "page.html",
            "plots",
            "plots/deep",
            "plots/deep/x.txt",
        ]
    ann.delete(f"/jobs/{job}").raise_for_status()
    problem(ann.get(f"/jobs/{job}/files"), 404)


# ---------------------------------------------------------------- at the shell


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Person, Person]]:
    with cli_server(tmp_path_factory.mktemp("presets"), "--virtual-gpus", "2xA100-80G") as running:
        operator = operator_of(running)
        yield operator, scientist(running, operator, "ann")


def test_presets_and_files_at_the_shell(people: tuple[Person, Person]) -> None:
    _, ann = people
    assert "classification" in ann.ok("preset", "ls")
    shown = ann.ok("preset", "show", "classification")
    assert "mlp-deep" in shown
    assert "2…10" in shown
    assert ann.ok("preset", "show", "detection", "--yaml").startswith("name: detection\n")
    run = ("preset", "run", "classification", "-p", "epochs=2", "-p", "model=linear", "--name", "first-model")
    ann.run(*run, "--wait", code=0)
    assert "metrics.json" in ann.ok("files", "first-model")
    assert ann.read("files", "ls", "first-model")["items"][1]["name"] == "model.json"
    ann.ok("files", "get", "first-model", "metrics.json", "-d", "results")
    assert json.loads((ann.home / "results" / "metrics.json").read_text())["model"] == "linear"
    ann.ok("files", "get", "first-model")
    assert (ann.home / "first-model-outputs" / "model.json").is_file()
    assert not list(ann.home.rglob(".corral-*"))
    base = ann.home / "results" / "metrics.json"
    for args, words in (
        (("preset", "run", "classification", "-p", "epochs=0"), "-p epochs: epochs must be at least 1"),
        (("preset", "run", "classification", "-p", "epoch=1"), "has no parameter 'epoch'; it has: model, dataset"),
        (("preset", "run", "classification", "--gpus", "3"), "--gpus: "),
        (("preset", "run", "nothing"), "there is no preset 'nothing'"),
        (("files", "get", "first-model", "nothing.bin"), "has no 'nothing.bin'"),
        (("files", "get", "first-model", "model.json", "-d", str(base)), "cannot write in"),
    ):
        assert words in ann.run(*args).err
    (ann.home / "job.yaml").write_text(
        "preset: classification\nparameters:\n  epochs: 1\n  seed: 08\nname: from-file\n"
    )
    ann.run("submit", "-f", "job.yaml", "--gpus", "0", "--wait", code=0)
    assert ann.read("show", "from-file")["parameters"]["seed"] == "8"


def test_operators_keep_presets_at_the_shell(people: tuple[Person, Person]) -> None:
    operator, ann = people
    file = operator.home / "hello.yaml"
    file.write_text("name: hello\nparameters:\n  - {name: who, type: text}\ncommand: [echo, 'hello {whom}']\n")
    reported = operator.run("preset", "add", "-f", str(file), code=2).err
    assert f"{file}:4: command[1]: there is no parameter 'whom'" in reported
    file.write_text("name: hello\nparameters:\n  - {name: who, type: text}\ncommand: [echo, 'hello {who}']\n")
    assert ann.run("preset", "add", "-f", str(file)).code == 3
    operator.ok("preset", "add", "-f", str(file))
    ann.run("preset", "run", "hello", "-p", "who=you & me", "--name", "said-hello", "--wait", code=0)
    assert ann.ok("logs", "said-hello") == "hello you & me\n"
    operator.ok("preset", "rm", "hello", "-y")
    assert ann.run("preset", "run", "hello").code == 4


def test_logs_at_the_shell(people: tuple[Person, Person], tmp_path: Path) -> None:
    _, ann = people
    job = ann.submit("--nodes", "1", "--kind", "training", "--", "sh", "-c", "echo One; echo two; echo THREE one")
    ann.wait_for(job, "completed")
    assert ann.ok("logs", job, "--search", "one", "-i") == "1:One\n3:THREE one\n"
    assert ann.ok("logs", job, "-s", "^t", "-E", "--rank", "all", "--attempt", "all") == "1:0:2:two\n"
    assert ann.run("logs", job, "--search", "four").code == 4
    assert ann.read("logs", job, "--search", "two")["items"][0]["offset"] == 4
    assert ann.ok("logs", job, "--all-ranks") == "==> attempt 1, rank 0 <==\nOne\ntwo\nTHREE one\n"
    ann.ok("logs", job, "--download", str(tmp_path / "it.log"))
    assert (tmp_path / "it.log").read_text() == "One\ntwo\nTHREE one\n"
    ann.ok("logs", job, "--all-ranks", "--download", str(tmp_path / "it.tar.gz"))
    with tarfile.open(tmp_path / "it.tar.gz") as archive:
        assert len(archive.getnames()) == 1
    for wrong in (("--rank", "first"), ("-f", "--search", "x"), ("--regex",), ("-f", "--rank", "all")):
        assert ann.run("logs", job, *wrong).code == 2
