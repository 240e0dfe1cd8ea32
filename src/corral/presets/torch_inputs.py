"""Samples as tensors: images, words and numbers. Threads read the samples of the next steps ahead of the training."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from corral.presets.formats import Sample
from corral.presets.torch_networks import BUCKETS, BadModel

#: The samples of so many coming steps are read ahead.
STEPS_AHEAD = 2
MOST_THREADS = 16
#: Random changes of the images that are learned from.
AUGMENTATIONS = ("none", "flip", "crop", "flip-and-crop")
#: A random crop keeps at least this part of the shorter side.
LEAST_CROP = 0.6
#: Networks of the libraries were trained on the middle of each image: this part of the shorter side.
MIDDLE = 0.875


@dataclass(frozen=True)
class Look:
    """The images that a network expects."""

    side: int
    #: mean and deviation of each colour, over the images that the network was trained on
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    deviation: tuple[float, ...] = (1.0, 1.0, 1.0)
    #: the middle square of the image; otherwise the whole image, squeezed
    is_cropped: bool = False


#: The colours of ImageNet, on which almost all weights of the libraries were trained.
IMAGENET = Look(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), is_cropped=True)
SMALL = Look(32)


def look_of(architecture: str, network: nn.Module) -> Look:
    """The images that the network expects. A network of timm says it itself."""
    if ":" not in architecture:
        return SMALL
    trained = getattr(network, "default_cfg", None) or getattr(network, "pretrained_cfg", None) or {}
    return Look(
        int(trained.get("input_size", (3, IMAGENET.side, IMAGENET.side))[-1]),
        tuple(trained.get("mean", IMAGENET.mean)),
        tuple(trained.get("std", IMAGENET.deviation)),
        is_cropped=True,
    )


def image_tensor(path: Path, look: Look, augmentation: str = "none", chance: random.Random | None = None) -> Any:
    """The image as the network expects it. With `chance`, changed at random as `augmentation` says."""
    image = open_image(path, 2 * look.side)
    if chance is not None and "crop" in augmentation:
        image = _square(image, chance.uniform(LEAST_CROP, 1.0), chance.random(), chance.random())
    elif look.is_cropped:
        image = _square(image, MIDDLE, 0.5, 0.5)
    if chance is not None and "flip" in augmentation and chance.random() < 0.5:
        image = image.flip(-1)
    sized = nn.functional.interpolate(
        image[None], size=(look.side, look.side), mode="bilinear", align_corners=False, antialias=True
    )[0]
    return (sized - _colours(look.mean)) / _colours(look.deviation)


def open_image(path: Path, least_side: int = 0) -> Any:
    """The colours as a tensor, from 0 to 1. Pillow reads it; without Pillow PGM and PPM files only. An image that is
    much larger than `least_side` may be read at a smaller size."""
    try:
        pillow = import_module("PIL.Image")
    except ImportError:
        return _portable_pixmap(path)
    try:
        with pillow.open(path) as image:
            if least_side:
                image.draft("RGB", (least_side, least_side))
            coloured = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise BadModel(f"the image {path} cannot be read: {error}") from None
    flat = torch.frombuffer(bytearray(coloured.tobytes()), dtype=torch.uint8)
    return flat.reshape(coloured.height, coloured.width, 3).permute(2, 0, 1).float() / 255


def _portable_pixmap(path: Path) -> Any:
    try:
        kind, width, height, most, content = path.read_bytes().split(maxsplit=4)
        colours = {b"P5": 1, b"P6": 3}[kind]
        # Exactly one white space separates the header from the pixels, which may look like white space.
        pixels = path.read_bytes()[-int(width) * int(height) * colours :] or content
        flat = torch.frombuffer(bytearray(pixels), dtype=torch.uint8)
        image = flat.reshape(int(height), int(width), colours).permute(2, 0, 1).float() / int(most)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise BadModel(f"the image {path} needs Pillow, or cannot be read: {error}") from None
    return image.expand(3, -1, -1)


def _square(image: Any, part: float, down: float, right: float) -> Any:
    """A square of `part` of the shorter side; `down` and `right` are its place, from 0 to 1."""
    height, width = image.shape[-2:]
    side = max(1, round(min(height, width) * part))
    top, left = round((height - side) * down), round((width - side) * right)
    return image[:, top : top + side, left : left + side]


def _colours(values: Sequence[float]) -> Any:
    return torch.tensor(values).reshape(3, 1, 1)


def word_counts(text: str) -> Any:
    row = torch.zeros(BUCKETS)
    for word in text.lower().split():
        row[zlib.crc32(word.encode()) % BUCKETS] += 1.0
    return row / max(1.0, float(row.sum()))


def numbers(row: Sequence[float]) -> Any:
    return torch.tensor(row, dtype=torch.float32)


class Reader:
    """Reads the samples of a step, and of the next steps in the background. Raises BadModel. The `readers` of one node
    share its CPUs."""

    def __init__(
        self,
        samples_of: Callable[[int], Sequence[Sample]],
        read: Callable[[int, Sample], Any],
        steps: int,
        readers: int = 1,
    ) -> None:
        self._samples_of = samples_of
        self._read = read
        self._steps = steps
        self._coming: dict[int, list[Future[Any]]] = {}
        threads = min(MOST_THREADS, len(os.sched_getaffinity(0)) // readers)
        self._threads = ThreadPoolExecutor(max_workers=max(1, threads))

    def batch(self, step: int) -> list[Any]:
        for coming in range(step, min(step + 1 + STEPS_AHEAD, self._steps)):
            if coming not in self._coming:
                samples = self._samples_of(coming)
                self._coming[coming] = [self._threads.submit(self._read, coming, sample) for sample in samples]
        return [future.result() for future in self._coming.pop(step)]

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
