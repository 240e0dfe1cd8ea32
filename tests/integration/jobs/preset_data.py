"""Small data sets in every format, made on the fly: images of a bright left, right or middle half."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

CLASSES = ("left", "middle", "right")
SIDE = 24


def image(chance: random.Random, label: int) -> bytes:
    """A grey image (PGM) whose bright third is the class."""
    third = SIDE // 3
    rows = []
    for _ in range(SIDE):
        for column in range(SIDE):
            is_bright = column // third == label
            rows.append(chance.randrange(170, 256) if is_bright else chance.randrange(0, 90))
    return b"P5\n%d %d\n255\n" % (SIDE, SIDE) + bytes(rows)


def image_folder(root: Path, each: int = 20, seed: int = 1) -> Path:
    chance = random.Random(seed)
    for label, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for number in range(each):
            (root / name / f"{number}.pgm").write_bytes(image(chance, label))
    return root


def csv_table(root: Path, rows: int = 120) -> Path:
    chance = random.Random(2)
    root.mkdir(parents=True)
    lines = ["x,y,label"]
    for _ in range(rows):
        x, y = chance.uniform(-1, 1), chance.uniform(-1, 1)
        lines.append(f"{x:.3f},{y:.3f},{'above' if y > x else 'below'}")
    (root / "data.csv").write_text("\n".join(lines) + "\n")
    return root


def texts(root: Path, each: int = 30) -> Path:
    chance = random.Random(3)
    words = {"good": ["fine", "great", "lovely"], "bad": ["poor", "awful", "broken"]}
    for name, own in words.items():
        (root / name).mkdir(parents=True)
        for number in range(each):
            chosen = [chance.choice([*own, "the", "a", "it"]) for _ in range(8)] + [chance.choice(own)]
            (root / name / f"{number}.txt").write_text(" ".join(chosen))
    return root


def coco(root: Path, count: int = 60) -> Path:
    """One bright square in each image: a small one or a large one."""
    chance = random.Random(4)
    (root / "images").mkdir(parents=True)
    images, boxes = [], []
    for number in range(count):
        label = number % 2
        size = (8, 20)[label] + chance.randrange(0, 3)
        left, top = chance.randrange(0, 48 - size), chance.randrange(0, 48 - size)
        points = bytearray(chance.randrange(0, 60) for _ in range(48 * 48))
        for row in range(top, top + size):
            points[row * 48 + left : row * 48 + left + size] = bytes([230]) * size
        (root / "images" / f"{number}.pgm").write_bytes(b"P5\n48 48\n255\n" + bytes(points))
        images.append({"id": number, "file_name": f"{number}.pgm", "width": 48, "height": 48})
        boxes.append({"image_id": number, "category_id": label + 1, "bbox": [left, top, size, size]})
    categories = [{"id": 1, "name": "small"}, {"id": 2, "name": "large"}]
    stored = {"images": images, "annotations": boxes, "categories": categories}
    (root / "annotations.json").write_text(json.dumps(stored))
    return root


def coco_in_parts(root: Path, layout: str, count: int = 12) -> Path:
    """The same with a learned and a held-out part, as `instances` of the data set COCO or as an `export` of a tool."""
    for part, name in (
        (("train", "train2017"), ("val", "val2017"))
        if layout == "instances"
        else (
            ("train", "train"),
            ("valid", "valid"),
        )
    ):
        whole = coco(root / "made" / part, count if part == "train" else count // 2)
        images, annotations = root / name, (whole / "annotations.json").read_text()
        (whole / "images").rename(images)
        if layout == "instances":
            (root / "annotations").mkdir(exist_ok=True)
            (root / "annotations" / f"instances_{name}.json").write_text(annotations)
        else:
            (images / "_annotations.coco.json").write_text(annotations)
    shutil.rmtree(root / "made")
    return root
