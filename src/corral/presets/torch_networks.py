"""Networks for the trainings with PyTorch: small ones of our own, and those of torchvision and timm where they are
installed. And their weights: loaded by name and shape, never as programs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

WEIGHTS, ABOUT = "weights.pt", "model.json"
#: Words are counted in so many buckets.
BUCKETS = 4096
#: The detector looks at so many cells in each direction.
CELLS = 8


class BadModel(Exception):
    """The network or its weights cannot be used; the message says why."""


class SmallCnn(nn.Module):  # type: ignore[misc]
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(32 * 16, classes)

    def forward(self, images: Any) -> Any:
        return self.head(self.body(images))


class BagOfWords(nn.Module):  # type: ignore[misc]
    """Texts as rows of word counts."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(BUCKETS, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, counts: Any) -> Any:
        return self.head(self.body(counts))


class Perceptron(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, rows: Any) -> Any:
        return self.head(self.body(rows))


class SmallDetector(nn.Module):  # type: ignore[misc]
    """A detector that predicts for each cell whether an object has its centre there, its box, and its class."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(CELLS),
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(64, 5 + classes, 1)

    def forward(self, images: Any) -> Any:
        return self.head(self.body(images))


#: The detectors of torchvision that learn from boxes alone.
DETECTORS = (
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
    "fcos_resnet50_fpn",
    "retinanet_resnet50_fpn",
    "retinanet_resnet50_fpn_v2",
    "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
)
#: The network that is used if none is named, by the kind of samples.
USUAL = {"image": "small-cnn", "text": "bag-of-words", "numbers": "mlp", "boxes": "small-detector"}


def build(architecture: str, kind: str, classes: int, inputs: int) -> nn.Module:
    """`inputs` is the length of rows of numbers. Raises BadModel."""
    library, _, name = architecture.rpartition(":")
    if library == "torchvision" and kind == "boxes":
        return _detector_of_torchvision(name, classes)
    if library and kind != "image":
        raise BadModel(f"{architecture} classifies images, and these samples are {kind}")
    if library == "torchvision":
        return _from_torchvision(name, classes)
    if library == "timm":
        return _from_timm(name, classes)
    if architecture != USUAL[kind]:
        raise BadModel(f"there is no network {architecture!r} for {kind}: {USUAL[kind]}, torchvision:… or timm:…")
    if kind == "numbers":
        return Perceptron(inputs, classes)
    return {"image": SmallCnn, "text": BagOfWords, "boxes": SmallDetector}[kind](classes)


def _from_torchvision(name: str, classes: int) -> nn.Module:
    try:
        models = import_module("torchvision.models")
    except ImportError:
        raise BadModel("torchvision is not installed in this environment") from None
    make = getattr(models, name, None)
    if not name.isidentifier() or name.startswith("_") or not callable(make) or not name.islower():
        raise BadModel(f"torchvision has no network {name!r}")
    made: nn.Module = make(weights=None, num_classes=classes)
    return made


def _detector_of_torchvision(name: str, classes: int) -> nn.Module:
    """A detector, whose class 0 is the background."""
    try:
        detection = import_module("torchvision.models.detection")
    except ImportError:
        raise BadModel("torchvision is not installed in this environment") from None
    if name not in DETECTORS or not hasattr(detection, name):
        known = ", ".join(each for each in DETECTORS if hasattr(detection, each))
        raise BadModel(f"torchvision has no detector {name!r}; there are: {known}")
    made: nn.Module = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=classes + 1)
    return made


def _from_timm(name: str, classes: int) -> nn.Module:
    try:
        timm = import_module("timm")
    except ImportError:
        raise BadModel("timm is not installed in this environment") from None
    try:
        made: nn.Module = timm.create_model(name, pretrained=False, num_classes=classes)
    except RuntimeError as error:
        raise BadModel(f"timm: {error}") from None
    return made


def head_of(network: nn.Module) -> nn.Module:
    """The last layer, which has an output for each class."""
    layers = [layer for layer in network.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]
    head = getattr(network, "head", None)
    return head if isinstance(head, nn.Module) else layers[-1]


def freeze_body(network: nn.Module) -> None:
    """Freezes all layers except the last one; of a detector only its backbone."""
    for part in _frozen_and_learning(network)[0]:
        for parameter in part.parameters():
            parameter.requires_grad = False
    for parameter in _frozen_and_learning(network)[1].parameters():
        parameter.requires_grad = True


def start_learning(network: nn.Module, is_frozen: bool) -> None:
    """Frozen layers keep the statistics of their normalization, too."""
    network.train()
    if is_frozen:
        frozen, learning = _frozen_and_learning(network)
        for part in frozen:
            part.eval()
        learning.train()


def _frozen_and_learning(network: nn.Module) -> tuple[list[nn.Module], nn.Module]:
    backbone = getattr(network, "backbone", None)
    if isinstance(backbone, nn.Module):
        return [backbone], nn.ModuleList(part for part in network.children() if part is not backbone)
    return [network], head_of(network)


# ------------------------------------------------------------------------------------------------ weights


def described(place: Path) -> dict[str, Any]:
    """The architecture and classes that are stored beside the weights; empty if there are none."""
    about = (place if place.is_dir() else place.parent) / ABOUT
    try:
        stored = json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def load_weights(network: nn.Module, place: Path) -> tuple[int, int]:
    """Load the tensors whose names and shapes are those of the network; how many, and of how many. The rest, such as
    the last layer for other classes, begins anew. Raises BadModel."""
    path = place / WEIGHTS if place.is_dir() else place
    try:
        # Only tensors: a file of weights must not run programs.
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - of the file system, of pickle, of zip files and of torch itself
        raise BadModel(f"the weights {path} cannot be read: {error}") from None
    found = stored.get("state_dict", stored) if isinstance(stored, dict) else None
    own = network.state_dict()
    if not isinstance(found, dict):
        raise BadModel(f"the weights {path} are not a state dict")
    fitting = {
        name: tensor
        for name, tensor in found.items()
        if name in own and getattr(tensor, "shape", None) == own[name].shape
    }
    if not fitting:
        raise BadModel(f"no tensor of {path} has the name and shape of one of the network")
    network.load_state_dict({**own, **fitting})
    return len(fitting), len(own)


def save_weights(folder: Path, state: dict[str, Any], about: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{WEIGHTS}"
    torch.save(state, draft)
    draft.replace(folder / WEIGHTS)
    (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
