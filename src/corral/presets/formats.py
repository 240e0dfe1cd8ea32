"""Data sets as directories: folders of images, COCO, CSV and text. Finds their classes, and splits them.

| format | content |
|---|---|
| `image-folder` | a directory for each class, with its images |
| `text` | a directory for each class, with its texts (`*.txt`) |
| `csv` | `data.csv`, or the only CSV file: a column `label`, and a column `path`, a column `text`, or numbers |
| `coco` | images, annotations and categories, in one of the layouts of `_coco_files` |

Directories `train` and `val` (or `valid`) are the learned and the held-out part; without them every fifth sample is
held out.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMATS = ("image-folder", "coco", "csv", "text")
MOST_CLASSES = 10_000
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm"})
#: One in so many samples is held out where the data set has no part `val`.
HELD_OUT = 5
#: Names of the directory of the held-out part.
HELD_OUT_PARTS = ("val", "valid", "validation")


class BadData(Exception):
    """The directory is not what its format says; the message names the file."""


@dataclass(frozen=True)
class Box:
    """An object in an image; the edges are parts of the image, from 0 to 1."""

    label: int
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Sample:
    #: the path of an image, a text, or numbers
    source: Any
    #: the class; -1 where boxes have the classes
    label: int = -1
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True)
class Collected:
    """`kind` is image, text, numbers or boxes."""

    kind: str
    classes: list[str]
    learned: list[Sample]
    held_out: list[Sample]


def classes_of(directory: Path, form: str) -> list[str]:
    """The classes in their order, without reading the samples. Raises BadData."""
    if form in ("image-folder", "text"):
        return _folder_classes(directory)
    if form == "csv":
        return _sorted({row["label"] for row in _rows(_table(directory))})
    if form == "coco":
        learned, held_out = _coco_files(directory)
        names = {name for file in (learned, held_out) if file for _, name in _categories(_annotations(file.path))}
        return _sorted(names)
    raise BadData(f"there is no format {form!r}; there are: {', '.join(FORMATS)}")


def collect(directory: Path, form: str, seed: int) -> Collected:
    """All samples. Raises BadData."""
    classes = classes_of(directory, form)
    if form == "coco":
        learned_file, held_out_file = _coco_files(directory)
        samples = list(_coco_samples(learned_file, classes))
        if held_out_file is None:
            return _split("boxes", classes, samples, seed)
        return _checked(Collected("boxes", classes, samples, list(_coco_samples(held_out_file, classes))))
    if form == "csv":
        kind, samples = _csv_samples(directory, classes)
        return _split(kind, classes, samples, seed)
    kind = "text" if form == "text" else "image"
    parts = [directory / part for part in HELD_OUT_PARTS if (directory / part).is_dir()]
    if parts and (directory / "train").is_dir():
        learned, held_out = (list(_folder_samples(part, classes, kind)) for part in (directory / "train", parts[0]))
        return _checked(Collected(kind, classes, learned, held_out))
    return _split(kind, classes, list(_folder_samples(directory, classes, kind)), seed)


def _folder_classes(directory: Path) -> list[str]:
    root = directory / "train" if (directory / "train").is_dir() else directory
    found = [entry.name for entry in _entries(root) if entry.is_dir() and not entry.name.startswith(".")]
    if not found:
        raise BadData(f"{root} has no directory for each class")
    return _sorted(found)


def _folder_samples(root: Path, classes: list[str], kind: str) -> Iterator[Sample]:
    suffixes = {".txt"} if kind == "text" else IMAGE_SUFFIXES
    for label, name in enumerate(classes):
        for path in _entries(root / name) if (root / name).is_dir() else ():
            if path.suffix.lower() in suffixes:
                yield Sample(source=_text_of(path) if kind == "text" else path, label=label)


def _csv_samples(directory: Path, classes: list[str]) -> tuple[str, list[Sample]]:
    place = {name: number for number, name in enumerate(classes)}
    table = _table(directory)
    samples, kind = [], "numbers"
    source: Any
    for number, row in enumerate(_rows(table), start=2):
        label = place[row.pop("label")]
        if "path" in row:
            if not _is_inside(row["path"]):
                raise BadData(f"{table} line {number}: the path {row['path']!r} leaves the data set")
            kind, source = "image", table.parent / row["path"]
        elif "text" in row:
            kind, source = "text", row["text"]
        else:
            source = _numbers(table, number, row)
        samples.append(Sample(source=source, label=label))
    return kind, samples


def _numbers(table: Path, line: int, row: dict[str, str]) -> list[float]:
    try:
        return [float(value) for value in row.values()]
    except (TypeError, ValueError):
        raise BadData(f"{table} line {line}: a column without numbers, and no column `path` or `text`") from None


@dataclass(frozen=True)
class _CocoFile:
    """A file of annotations, and the directory of its images."""

    path: Path
    images: Path


def _coco_files(directory: Path) -> tuple[_CocoFile, _CocoFile | None]:
    """The file of the learned part, and that of the held-out part if the data set has one:

    - `annotations.json`, with the images in `images/` or beside it;
    - `annotations/instances_train2017.json` and `…_val2017.json`, with the images in `train2017/` and `val2017/`,
      or in these directories of `images/`;
    - `train/_annotations.coco.json` and `valid/_annotations.coco.json`, with the images beside them.
    """
    if (directory / "annotations.json").exists():
        images = directory / "images"
        return _CocoFile(directory / "annotations.json", images if images.is_dir() else directory), None
    learned = _coco_part(directory, ("train",))
    if learned is None:
        raise BadData(
            f"{directory} has no annotations.json, no annotations/instances_train*.json, and no "
            "train/_annotations.coco.json"
        )
    return learned, _coco_part(directory, HELD_OUT_PARTS)


def _coco_part(directory: Path, names: tuple[str, ...]) -> _CocoFile | None:
    for name in names:
        exported = directory / name / "_annotations.coco.json"
        if exported.exists():
            return _CocoFile(exported, exported.parent)
        for path in sorted((directory / "annotations").glob(f"instances_{name}*.json")):
            part = path.stem.partition("_")[2]
            places = (directory / "images" / part, directory / part, directory / "images" / name, directory / name)
            return _CocoFile(path, next((place for place in places if place.is_dir()), directory))
    return None


def _coco_samples(file: _CocoFile, classes: list[str]) -> Iterator[Sample]:
    stored = _annotations(file.path)
    place_of = {name: label for label, name in enumerate(classes)}
    label_of = {number: place_of[name] for number, name in _categories(stored)}
    boxes: dict[Any, list[Any]] = {}
    try:
        for each in stored["annotations"]:
            # A crowd is one box around many objects: nothing to learn from.
            if not each.get("iscrowd"):
                boxes.setdefault(each["image_id"], []).append((label_of[each["category_id"]], each["bbox"]))
        for image in stored["images"]:
            width, height = float(image["width"]), float(image["height"])
            if not _is_inside(image["file_name"]):
                raise BadData(f"the path {image['file_name']!r} leaves the data set")
            found = (_box(label, bbox, width, height) for label, bbox in boxes.get(image["id"], ()))
            # An object without an extent, as some tools write it, cannot be found.
            whole = tuple(box for box in found if box.right > box.left and box.bottom > box.top)
            yield Sample(source=file.images / image["file_name"], boxes=whole)
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise BadData(f"the annotations {file.path} are not COCO: {error!r}") from None


def _box(label: int, bbox: Any, width: float, height: float) -> Box:
    left, top, wide, high = (float(value) for value in bbox)
    return Box(label, left / width, top / height, (left + wide) / width, (top + high) / height)


def _annotations(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"{path} cannot be read: {error}") from None
    if not isinstance(stored, dict):
        raise BadData(f"{path} has no images, annotations and categories")
    return stored


def _categories(stored: dict[str, Any]) -> list[tuple[Any, str]]:
    try:
        found = [(each["id"], str(each["name"])) for each in stored["categories"]]
    except (KeyError, TypeError) as error:
        raise BadData(f"the categories of the annotations are not COCO: {error!r}") from None
    return sorted(found, key=lambda each: str(each[1]))[:MOST_CLASSES]


def _table(directory: Path) -> Path:
    if directory.is_file():
        return directory
    tables = [path for path in _entries(directory) if path.suffix.lower() == ".csv"]
    named = [path for path in tables if path.name == "data.csv"]
    if len(named or tables) != 1:
        raise BadData(f"{directory} has {len(tables)} CSV files, and none is named data.csv")
    return (named or tables)[0]


def _rows(table: Path) -> Iterator[dict[str, str]]:
    try:
        with table.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if "label" not in (reader.fieldnames or ()):
                raise BadData(f"{table} has no column `label`")
            for row in reader:
                if row["label"] is None:
                    raise BadData(f"{table} line {reader.line_num}: no label")
                yield dict(row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"{table} cannot be read: {error}") from None


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        raise BadData(f"{directory} cannot be read: {error.strerror}") from None


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror}") from None


def _sorted(names: Any) -> list[str]:
    found = sorted(names)
    if len(found) > MOST_CLASSES:
        raise BadData(f"{len(found)} classes are too many: at most {MOST_CLASSES}")
    return found


def _is_inside(name: str) -> bool:
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def _split(kind: str, classes: list[str], samples: list[Sample], seed: int) -> Collected:
    mixed = list(samples)
    random.Random(seed).shuffle(mixed)
    learned = [sample for place, sample in enumerate(mixed) if place % HELD_OUT]
    return _checked(Collected(kind, classes, learned, mixed[::HELD_OUT]))


def _checked(found: Collected) -> Collected:
    if not found.learned or not found.held_out:
        raise BadData(f"too few samples: {len(found.learned)} to learn from, {len(found.held_out)} to test with")
    return found
