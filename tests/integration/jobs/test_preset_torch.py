"""The trainings with PyTorch, as programs: every format, precision and mode, on a GPU where the machine has one."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from corral.checkpoint.slim import install_slim
from corral.presets.shipped import install_trainings
from tests.integration.jobs import preset_data
from tests.servers.torch_python import torch_python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("helper")
    install_slim(directory)
    install_trainings(directory)
    return directory


@functools.cache
def has(module: str) -> bool:
    return subprocess.run([torch_python(), "-c", f"import {module}"], capture_output=True).returncode == 0


@functools.cache
def has_gpu() -> bool:
    asked = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([torch_python(), "-c", asked], capture_output=True).returncode == 0


def needs_torchvision() -> None:
    if not has("torchvision"):
        pytest.skip("torchvision is not installed: run scripts/install-test-servers (package python3-torchvision)")


class Training:
    def __init__(self, helper: Path, place: Path, name: str = "classifier", **env: str) -> None:
        self.outputs = place / "outputs"
        self.checkpoints = place / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        self.outputs.mkdir()
        self._name = name
        self._env = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(helper),
            # More threads than that only wait for each other where tests run side by side.
            "OMP_NUM_THREADS": "1",
            "CORRAL_OUTPUT_DIR": str(self.outputs),
            "CORRAL_CHECKPOINT_DIR": str(self.checkpoints),
            **env,
        }

    def start(self, data: Path, form: str, *options: str, allow_cpu: bool = True) -> subprocess.Popen[str]:
        command = [torch_python(), "-m", f"corral.presets.{self._name}", f"--data={data}", f"--format={form}"]
        cpu = f"--allow-cpu={str(allow_cpu).lower()}"
        return subprocess.Popen(
            [*command, cpu, *options], env=self._env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, data: Path, form: str, *options: str, code: int = 0, allow_cpu: bool = True) -> str:
        process = self.start(data, form, *options, allow_cpu=allow_cpu)
        reported, _ = process.communicate(timeout=300)
        assert process.returncode == code, reported
        return reported

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.outputs / "report.json").read_text())
        return found


def test_a_classifier_of_images_learns_and_is_fine_tuned_from_its_best_weights(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images")
    first = Training(helper, tmp_path / "first")
    first.run(data, "image-folder", "--epochs=12", "--learning-rate=0.005")
    report = first.report()
    assert report["mode"] == "scratch", "there are no weights to fine-tune"
    curves = [json.loads(line) for line in (first.outputs / "curves.jsonl").read_text().splitlines()]
    assert [line["step"] for line in curves] == list(range(1, 13))
    assert curves[-1]["values"].keys() == {"loss", "held_out_loss", "accuracy"}
    assert report["classes"] == list(preset_data.CLASSES)
    assert report["accuracy"] == 1.0
    assert report["history"][-1]["loss"] < report["history"][0]["loss"] / 2
    assert sum(map(sum, report["confusion"])) == 12, "every held-out image is counted"
    page = (first.outputs / "report.html").read_text()
    assert "Confusion matrix" in page
    assert "<polyline" in page

    second = Training(helper, tmp_path / "second")
    weights = (f"--weights={first.outputs / 'best'}", "--weights-name=first")
    log = second.run(data, "image-folder", *weights, "--mode=feature-extraction", "--epochs=1")
    assert "6 of 6 tensors are those of first" in log
    assert second.report()["accuracy"] == 1.0, "one epoch is enough from good weights"
    kept, learned = (json_of_weights(training.outputs / "best" / "weights.pt") for training in (first, second))
    assert kept["body.0.weight"] == learned["body.0.weight"], "only the last layer learns"
    assert kept["head.weight"] != learned["head.weight"]


def json_of_weights(path: Path) -> dict[str, float]:
    """The sums of the tensors, by name."""
    program = (
        "import json, sys, torch; stored = torch.load(sys.argv[1], weights_only=True);"
        "print(json.dumps({name: float(tensor.double().sum()) for name, tensor in stored.items()}))"
    )
    done = subprocess.run([torch_python(), "-c", program, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("form", "make", "options"), [
    ("csv", preset_data.csv_table, ("--epochs=25", "--learning-rate=0.01")),
    ("text", preset_data.texts, ("--epochs=8", "--learning-rate=0.01")),
])  # fmt: skip
def test_tables_and_texts_are_classified(helper: Path, tmp_path: Path, form: str, make: Any, options: Any) -> None:
    training = Training(helper, tmp_path / "training")
    training.run(make(tmp_path / "data"), form, "--mode=scratch", *options)
    assert training.report()["accuracy"] >= 0.9


def test_a_detector_reports_its_mean_average_precision(helper: Path, tmp_path: Path) -> None:
    training = Training(helper, tmp_path / "training", "detector")
    data = preset_data.coco(tmp_path / "data")
    training.run(data, "coco", "--mode=scratch", "--epochs=30", "--learning-rate=0.003")
    report = training.report()
    assert report["map50"] >= 0.8
    assert report["average_precision"].keys() == {"small", "large"}
    assert "Average precision" in (training.outputs / "report.html").read_text()


def test_an_interrupted_training_ends_as_an_undisturbed_one(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images", each=40)
    options = ("--mode=scratch", "--epochs=10", "--batch-size=8", "--augmentation=flip-and-crop")
    whole, parts = Training(helper, tmp_path / "whole"), Training(helper, tmp_path / "parts")
    whole.run(data, "image-folder", *options)
    process = parts.start(data, "image-folder", *options)
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("epoch 2/"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert "resumed after" in parts.run(data, "image-folder", *options)
    found, wanted = (
        [value for entry in training.report()["history"] for value in entry.values()] for training in (parts, whole)
    )
    assert found == pytest.approx(wanted)


def test_reduced_precision(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images")
    for precision in ("bf16", *(["fp16"] if has_gpu() else [])):
        training = Training(helper, tmp_path / precision)
        training.run(data, "image-folder", "--mode=scratch", "--epochs=12", "--learning-rate=0.005",
                     f"--precision={precision}")  # fmt: skip
        assert training.report()["accuracy"] >= 0.9


def test_torchvision_networks(helper: Path, tmp_path: Path) -> None:
    needs_torchvision()
    data = preset_data.image_folder(tmp_path / "images", each=2)
    pretrained = tmp_path / "resnet18.pth"
    make = "import sys, torch, torchvision; torch.save(torchvision.models.resnet18().state_dict(), sys.argv[1])"
    subprocess.run([torch_python(), "-c", make, str(pretrained)], check=True)
    training = Training(helper, tmp_path / "training")
    log = training.run(data, "image-folder", f"--weights={pretrained}", "--epochs=1", "--batch-size=4",
                       "--weights-architecture=torchvision:resnet18")  # fmt: skip
    assert "120 of 122 tensors are those of" in log, "all but the last layer, which has other classes"
    assert training.report()["architecture"] == "torchvision:resnet18"

    frozen = Training(helper, tmp_path / "frozen")
    frozen.run(data, "image-folder", f"--weights={pretrained}", "--epochs=1", "--batch-size=4",
               "--weights-architecture=torchvision:resnet18", "--mode=feature-extraction")  # fmt: skip
    before, after = (json_of_weights(path) for path in (pretrained, frozen.outputs / "best" / "weights.pt"))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"fc.weight", "fc.bias"}, "frozen layers keep the statistics of their normalization, too"


def test_detectors_of_torchvision(helper: Path, tmp_path: Path) -> None:
    needs_torchvision()
    data = preset_data.coco_in_parts(tmp_path, "export", count=4)
    training = Training(helper, tmp_path / "training", "detector")
    name = "torchvision:ssdlite320_mobilenet_v3_large"
    refused = training.run(data, "coco", "--architecture=torchvision:maskrcnn_resnet50_fpn", code=2)
    assert "torchvision has no detector 'maskrcnn_resnet50_fpn'; there are: fasterrcnn_" in refused
    training.run(data, "coco", f"--architecture={name}", "--epochs=1", "--batch-size=4")
    report = training.report()
    assert report["architecture"] == name
    assert report["average_precision"].keys() == {"small", "large"}

    tuned = Training(helper, tmp_path / "tuned", "detector")
    weights = (f"--weights={training.outputs / 'best'}", "--mode=feature-extraction")
    tuned.run(data, "coco", *weights, "--epochs=1", "--batch-size=4")
    before, after = (json_of_weights(each.outputs / "best" / "weights.pt") for each in (training, tuned))
    changed = {name.split(".")[0] for name in before if before[name] != after[name]}
    assert changed == {"head"}, "the backbone is frozen"


def test_images_look_as_the_network_expects_them(helper: Path, tmp_path: Path) -> None:
    """A red image of 40 × 20 points: in the middle square and in every crop of it all points are red."""
    path = tmp_path / "red.ppm"
    path.write_bytes(b"P6\n40 20\n255\n" + bytes([255, 0, 0]) * 800)
    program = """if True:
        import json, random, sys
        from pathlib import Path
        from corral.presets.torch_inputs import IMAGENET, SMALL, image_tensor
        path = Path(sys.argv[1])
        made = [image_tensor(path, SMALL), image_tensor(path, IMAGENET),
                image_tensor(path, IMAGENET, "flip-and-crop", random.Random(1))]
        print(json.dumps([[list(image.shape), [float(image[c].min()) for c in range(3)],
                           [float(image[c].max()) for c in range(3)]] for image in made]))
    """
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(helper)}
    done = subprocess.run([torch_python(), "-c", program, str(path)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    small, large, changed = json.loads(done.stdout)
    of_imagenet = [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225]
    for (shape, least, most), side, colours in (
        (small, 32, [0.5, -0.5, -0.5]),
        (large, 224, of_imagenet),
        (changed, 224, of_imagenet),
    ):
        assert shape == [3, side, side]
        assert least == pytest.approx(colours, abs=1e-4)
        assert most == pytest.approx(colours, abs=1e-4)


def test_a_training_that_cannot_go_on_says_why(helper: Path, tmp_path: Path) -> None:
    data = preset_data.image_folder(tmp_path / "images", each=4)
    training = Training(helper, tmp_path / "diverging")
    reported = training.run(data, "image-folder", "--learning-rate=1e30", "--epochs=9", code=2)
    assert "is not a number: choose a lower learning rate" in reported
    (data / "left" / "0.pgm").write_bytes(b"P5 not an image")
    reported = Training(helper, tmp_path / "broken").run(data, "image-folder", "--epochs=1", code=2)
    assert "0.pgm" in reported
    assert "Traceback" not in reported


def test_a_gpu_is_used_and_otherwise_needed(helper: Path, tmp_path: Path) -> None:
    data = preset_data.csv_table(tmp_path / "data")
    training = Training(helper, tmp_path / "training")
    if has_gpu():
        training.run(data, "csv", "--mode=scratch", "--epochs=1", allow_cpu=False)
        assert training.report()["device"] != "cpu"
    else:
        assert "runs on GPUs only" in training.run(data, "csv", "--mode=scratch", code=2, allow_cpu=False)
        assert "fp16 needs a GPU" in training.run(data, "csv", "--mode=scratch", "--precision=fp16", code=2)


def test_data_that_does_not_fit_is_refused(helper: Path, tmp_path: Path) -> None:
    data = preset_data.csv_table(tmp_path / "data")
    training = Training(helper, tmp_path / "training")
    assert "needs pretrained weights" in training.run(data, "csv", "--mode=fine-tune", code=2)
    assert "has no annotations.json" in training.run(data, "coco", "--mode=scratch", code=2)
    (tmp_path / "evil.pt").write_bytes(b"cos\nsystem\n(S'touch /tmp/never'\ntR.")
    assert "cannot be read" in training.run(data, "csv", f"--weights={tmp_path / 'evil.pt'}", code=2)
    assert "no network 'torchvision:resnet18'" not in training.run(
        data, "csv", "--mode=scratch", "--architecture=torchvision:resnet18", code=2
    )
