"""An operator registers a data set and a model; a user trains, gets a report and the best weights as a version of a
dataset, and trains on from those weights."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli_harness import Person, cli_server, operator_of, scientist
from tests.integration.jobs import preset_data
from tests.integration.waiting import wait_until
from tests.servers.torch_python import torch_python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Person, Person]]:
    with cli_server(tmp_path_factory.mktemp("home"), "--virtual-nodes", "2x2xA100-80G") as server:
        operator = operator_of(server)
        yield operator, scientist(server, operator, "ann")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A directory that the jobs' account can read as well."""
    for directory in (tmp_path, *tmp_path.parents[:3]):
        # Without workers beside each other the last one is /tmp, where every account may write.
        if directory != Path(tempfile.gettempdir()):
            directory.chmod(0o755)
    return tmp_path / "mirror"


def surroundings() -> tuple[str, ...]:
    path = f"PATH={Path(torch_python()).parent}:/usr/bin:/bin"
    return ("--env", path, "--env", "OMP_NUM_THREADS=1", "--memory", "2GiB", "--cpus", "1")


def training_options(*options: str) -> tuple[str, ...]:
    """On CPUs, because these GPUs are virtual."""
    return ("-p", "allow_cpu=true", "-p", "precision=fp32", *surroundings(), *options)


def trained(person: Person, name: str, *options: str) -> dict[str, Any]:
    """The report of a training that has completed."""
    person.run("preset", "run", "classifier", "--name", name, *training_options(*options), "--wait", code=0)
    return report_of(person, name)


def report_of(person: Person, name: str) -> dict[str, Any]:
    person.ok("files", "get", name, "report.json", "-d", f"results-{name}")
    found: dict[str, Any] = json.loads((person.home / f"results-{name}" / "report.json").read_text())
    return found


def test_register_train_report_commit_and_train_again(people: tuple[Person, Person], mirror: Path) -> None:
    operator, ann = people
    data = preset_data.image_folder(mirror / "thirds")
    added = operator.ok("preset", "add-dataset", "thirds", "--directory", str(data), "--format", "image-folder")
    assert "3 classes" in added
    assert ann.run("preset", "add-model", "mine", "--directory", str(mirror)).code == 3, "only operators register"
    listed = {asset["name"]: asset for asset in ann.read("preset", "assets")["items"]}
    assert listed["thirds"]["classes"] == list(preset_data.CLASSES)

    refused = ann.run("preset", "run", "classifier", "-p", "dataset=nothing").err
    assert "must be a registered dataset, got 'nothing'; there are: thirds" in refused
    refused = ann.run("preset", "run", "classifier", "-p", "dataset=thirds", "--commit", "weights=best").err
    assert "there is no dataset 'weights'" in refused

    ann.ok("dataset", "create", "weights")
    commit = ("-p", "dataset=thirds", "--commit", "weights=best")
    first = trained(ann, "first", *commit, "-p", "epochs=12", "-p", "learning_rate=0.005")
    assert first["accuracy"] == 1.0
    (version,) = ann.read("dataset", "log", "weights")["items"]
    assert version["message"].startswith("best of first (j-")
    ann.ok("dataset", "checkout", "weights@latest", "copy")
    assert json.loads((ann.home / "copy" / "model.json").read_text())["classes"] == list(preset_data.CLASSES)

    second = trained(ann, "second", *commit, "-p", "model=dataset:weights@latest", "-p", "epochs=1")
    assert second["weights"] == "dataset:weights@latest"
    assert second["accuracy"] == 1.0
    assert len(ann.read("dataset", "log", "weights")["items"]) == 2, "--wait waits for the commit, too"
    missing = ann.run("submit", "--name", "no-best", "--commit", "weights=best", "--wait", "--", "true")
    assert missing.code == 1
    assert "Nothing was committed to weights=best: " in missing.err
    assert "6 of 6 tensors" in ann.ok("logs", "second")

    operator.ok("preset", "add-model", "thirds-net", "--dataset", "ann/weights@latest", "--description", "Ann's best")
    third = trained(ann, "third", "-p", "dataset=thirds", "-p", "model=thirds-net", "-p", "mode=feature-extraction",
                    "-p", "epochs=1")  # fmt: skip
    assert (third["weights"], third["mode"]) == ("thirds-net", "feature-extraction")
    operator.ok("preset", "rm-asset", "model", "thirds-net", "-y")
    assert ann.run("preset", "run", "classifier", "-p", "dataset=thirds", "-p", "model=thirds-net").code == 2


def test_a_training_without_a_gpu_says_so(people: tuple[Person, Person], mirror: Path) -> None:
    operator, ann = people
    table = preset_data.csv_table(mirror / "table")
    operator.ok("preset", "add-dataset", "table", "--directory", str(table), "--format", "csv")
    run = ("preset", "run", "classifier", "--name", "no-gpu", "-p", "dataset=table", "-p", "mode=scratch")
    env = ("--env", f"PATH={Path(torch_python()).parent}:/usr/bin:/bin", "--memory", "1GiB", "--cpus", "1")
    assert ann.run(*run, *env, "--wait").code == 2
    assert "runs on GPUs only" in ann.ok("logs", "no-gpu")
    wrong = operator.run("preset", "add-dataset", "wrong", "--directory", str(table), "--format", "coco").err
    assert "has no annotations.json" in wrong


def test_a_training_uses_all_gpus_of_its_nodes_and_resumes_with_others(
    people: tuple[Person, Person], mirror: Path
) -> None:
    """Two processes, four on two nodes; and a training that is resized from one GPU to two while it trains."""
    operator, ann = people
    data = preset_data.image_folder(mirror / "halves", each=14)
    operator.ok("preset", "add-dataset", "halves", "--directory", str(data), "--format", "image-folder")
    learn = ("-p", "dataset=halves", "-p", "batch_size=7", "-p", "mode=scratch")
    single = trained(ann, "single", *learn, "-p", "epochs=3")
    both = trained(ann, "both", *learn, "-p", "epochs=3", "--gpus", "2")
    program = ("python3", "-m", "corral.presets.classifier", f"--data={data}", "--format=image-folder",
               "--mode=scratch", "--epochs=3", "--batch-size=7", "--allow-cpu=true")  # fmt: skip
    ann.run(
        "submit", "--name", "gang", "--nodes", "2", "--gpus", "2", *surroundings(), "--wait", "--", *program, code=0
    )
    gang = report_of(ann, "gang")
    assert (single["processes"], both["processes"], gang["processes"]) == (1, 2, 4)
    histories = [[value for entry in each["history"] for value in entry.values()] for each in (single, both, gang)]
    assert histories[1] == pytest.approx(histories[0], rel=1e-3)
    assert histories[2] == pytest.approx(histories[0], rel=1e-3)

    elastic = training_options(*learn, "-p", "epochs=300", "--min-gpus", "1", "--max-gpus", "2")
    ann.ok("preset", "run", "classifier", "--name", "elastic", *elastic)
    wait_until(lambda: "epoch 2/" in ann.ok("logs", "elastic"), "it trains")
    assert (ann.read("show", "elastic")["gpus"], "processes" in ann.ok("logs", "elastic")) == (1, False)
    ann.ok("resize", "elastic", "--gpus", "2")
    wait_until(lambda: ann.read("show", "elastic")["state"] == "completed", "it has resumed and ended", 240)
    assert ann.read("show", "elastic")["attempt"] > 1
    assert "resumed after" in ann.ok("logs", "elastic")
    assert "in 2 processes" in ann.ok("logs", "elastic", "--attempt", "2")
    assert len(report_of(ann, "elastic")["history"]) == 300
