"""The trainings that come with corral, as programs: they learn, and an interrupted one ends as an undisturbed one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corral.checkpoint.slim import install_slim
from corral.presets.shipped import install_trainings, templates

SMALL = ("--images=120", "--epochs=4", "--seed=3")


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The helper as jobs find it: beside the checkpoint helper, without the rest of corral."""
    directory = tmp_path_factory.mktemp("helper")
    install_slim(directory)
    install_trainings(directory)
    return directory


class Training:
    """One job of a preset, with its directories."""

    def __init__(self, helper: Path, place: Path, name: str) -> None:
        self.outputs = place / "outputs"
        self.checkpoints = place / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        self._name = name
        self._env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(helper),
            "CORRAL_OUTPUT_DIR": str(self.outputs),
            "CORRAL_CHECKPOINT_DIR": str(self.checkpoints),
        }

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"corral.presets.{self._name}", *options]
        return subprocess.Popen(
            command, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.checkpoints
        )

    def run(self, *options: str, code: int = 0) -> str:
        process = self.start(*options)
        reported, _ = process.communicate(timeout=120)
        assert process.returncode == code, reported
        return reported

    def result(self, name: str = "metrics.json") -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.outputs / name).read_text())
        return found


def test_every_template_has_its_training(helper: Path) -> None:
    for name in templates():
        assert (helper / "corral" / "presets" / f"{name}.py").is_file()


@pytest.mark.parametrize(("name", "options"), [("classification", ("--model=linear",)), ("detection", ())])
def test_numpy_and_plain_python_learn_the_same(
    helper: Path, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    found = {}
    for backend in ("plain", "numpy"):
        training = Training(helper, tmp_path / backend, name)
        training.run(f"--backend={backend}", *SMALL, *options)
        found[backend] = [entry["loss"] for entry in training.result()["history"]]
    assert found["plain"] == pytest.approx(found["numpy"], rel=1e-3)
    assert found["plain"][-1] < found["plain"][0]


def test_a_stopped_training_ends_as_an_undisturbed_one(helper: Path, tmp_path: Path) -> None:
    options = ("--backend=plain", "--images=200", "--epochs=8", "--model=linear")
    undisturbed = Training(helper, tmp_path / "undisturbed", "classification")
    undisturbed.run(*options)
    disturbed = Training(helper, tmp_path / "disturbed", "classification")
    process = disturbed.start(*options)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 2/"):
            process.send_signal(signal.SIGTERM)
            break
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert not disturbed.outputs.exists()
    reported = disturbed.run(*options)
    assert "resumed after" in reported
    assert "epoch 1/8" not in reported
    assert disturbed.result() == undisturbed.result()
    assert disturbed.result("model.json") == undisturbed.result("model.json")


def test_fine_tuning_goes_on_from_a_model_that_is_there(helper: Path, tmp_path: Path) -> None:
    base = Training(helper, tmp_path / "base", "classification")
    base.run(*SMALL, "--epochs=8")
    tuned = Training(helper, tmp_path / "tuned", "classification")
    reported = tuned.run(*SMALL, "--epochs=1", "--mode=fine-tune", f"--base={base.outputs / 'model.json'}")
    assert "begins with" in reported
    assert tuned.result()["loss"] < base.result()["history"][0]["loss"] / 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mode=fine-tune", "--base="), "needs a base"),
        (("--mode=fine-tune", "--base=/nowhere/model.json"), "cannot be read"),
        (("--classes=9",), "2 to 6 classes"),
    ],
)
def test_training_that_is_impossible_has_its_reason(
    helper: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    reported = Training(helper, tmp_path, "classification").run(*SMALL, *options, code=2)
    assert words in reported


def test_a_base_of_another_shape_is_refused(helper: Path, tmp_path: Path) -> None:
    base = Training(helper, tmp_path / "base", "classification")
    base.run(*SMALL, "--model=linear")
    tuned = Training(helper, tmp_path / "tuned", "classification")
    reported = tuned.run(*SMALL, "--model=mlp", "--mode=fine-tune", f"--base={base.outputs / 'model.json'}", code=2)
    assert "cannot be used: it has layers of [144, 4] units, and this training has [144, 32, 4]" in reported


def test_a_precision_that_is_not_possible_is_refused(helper: Path, tmp_path: Path) -> None:
    reported = Training(helper, tmp_path, "classification").run(
        *SMALL, "--model=linear", "--backend=plain", "--precision=bf16"
    )
    assert "bf16 is not possible here" in reported
