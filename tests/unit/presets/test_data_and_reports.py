"""Data sets as directories, measures computed by hand, and a report whose names cannot become HTML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.presets.evaluation import accuracy, average_precisions, confusion, overlap, without_doubles
from corral.presets.formats import BadData, Box, classes_of, collect
from corral.presets.report import page
from tests.integration.jobs import preset_data


def test_classes_and_samples_of_every_format(tmp_path: Path) -> None:
    images = preset_data.image_folder(tmp_path / "images", each=5)
    found = collect(images, "image-folder", seed=1)
    assert (found.kind, found.classes) == ("image", list(preset_data.CLASSES))
    assert (len(found.learned), len(found.held_out)) == (12, 3)
    assert collect(images, "image-folder", seed=1) == found, "the same seed splits in the same way"
    table = collect(preset_data.csv_table(tmp_path / "csv", rows=10), "csv", seed=1)
    assert (table.kind, table.classes, len(table.learned[0].source)) == ("numbers", ["above", "below"], 2)
    words = collect(preset_data.texts(tmp_path / "texts", each=5), "text", seed=1)
    assert (words.kind, words.classes) == ("text", ["bad", "good"])
    boxes = collect(preset_data.coco(tmp_path / "coco", count=5), "coco", seed=1)
    assert (boxes.kind, boxes.classes) == ("boxes", ["large", "small"])
    assert all(0 <= box.left < box.right <= 1 for sample in boxes.learned for box in sample.boxes)


def test_parts_that_the_data_set_has_itself_are_kept(tmp_path: Path) -> None:
    preset_data.image_folder(tmp_path / "train", each=3)
    preset_data.image_folder(tmp_path / "val", each=1)
    found = collect(tmp_path, "image-folder", seed=1)
    assert (len(found.learned), len(found.held_out)) == (9, 3)


@pytest.mark.parametrize("layout", ["instances", "export"])
def test_usual_layouts_of_coco_are_read(tmp_path: Path, layout: str) -> None:
    data = preset_data.coco_in_parts(tmp_path, layout)
    assert classes_of(data, "coco") == ["large", "small"]
    found = collect(data, "coco", seed=1)
    assert (len(found.learned), len(found.held_out)) == (12, 6)
    assert all(sample.source.is_file() for sample in (*found.learned, *found.held_out))


def test_crowds_and_boxes_without_an_extent_are_not_learned(tmp_path: Path) -> None:
    boxes = [
        {"image_id": 1, "category_id": 7, "bbox": [1, 1, 4, 4]},
        {"image_id": 1, "category_id": 7, "bbox": [1, 1, 0, 4]},
        {"image_id": 1, "category_id": 7, "bbox": [0, 0, 8, 8], "iscrowd": 1},
    ]
    images = [{"id": number, "file_name": f"{number}.png", "width": 8, "height": 8} for number in (1, 2)]
    stored = {"categories": [{"id": 7, "name": "a"}], "annotations": boxes, "images": images}
    (tmp_path / "annotations.json").write_text(json.dumps(stored))
    found = collect(tmp_path, "coco", seed=1)
    kept = [box for sample in (*found.learned, *found.held_out) for box in sample.boxes]
    assert kept == [Box(0, 0.125, 0.125, 0.625, 0.625)]


def test_data_of_another_format_is_refused_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x,y\n1,2\n")
    (tmp_path / "annotations.json").write_text('{"images": []}')
    for form, words in (
        ("csv", "no column `label`"),
        ("coco", "categories"),
        ("image-folder", "no directory for each class"),
        ("parquet", "there is no format"),
    ):
        with pytest.raises(BadData, match=words):
            classes_of(tmp_path, form)
    (tmp_path / "data.csv").write_text("path,label\n../../etc/passwd,a\n")
    with pytest.raises(BadData, match="leaves the data set"):
        collect(tmp_path, "csv", seed=1)
    stored = {"categories": [{"id": 1, "name": "a"}], "annotations": []}
    image = {"id": 1, "file_name": "/etc/passwd", "width": 1, "height": 1}
    (tmp_path / "annotations.json").write_text(json.dumps({**stored, "images": [image]}))
    with pytest.raises(BadData, match="leaves the data set"):
        collect(tmp_path, "coco", seed=1)


def test_measures() -> None:
    matrix = confusion([0, 0, 1, 1], [0, 1, 1, 1], 2)
    assert matrix == [[1, 1], [0, 2]]
    assert accuracy(matrix) == 0.75
    one, half = Box(0, 0.0, 0.0, 1.0, 1.0), Box(0, 0.0, 0.0, 1.0, 0.5)
    assert overlap(one, half) == 0.5
    assert without_doubles([(0.5, half), (0.9, one)]) == [(0.9, one)]


def test_the_average_precision_is_the_area_under_the_curve() -> None:
    """Two objects; the most certain box is right, the second is wrong, the third is right: 1/2 · 1 + 1/2 · 2/3."""
    left, right, nowhere = Box(0, 0, 0, 0.4, 1), Box(0, 0.6, 0, 1, 1), Box(0, 0.45, 0, 0.55, 0.1)
    found = [(0.9, left), (0.8, nowhere), (0.7, right)]
    assert average_precisions([[left, right]], [found], 2) == {0: pytest.approx(0.5 + 0.5 * 2 / 3)}
    assert average_precisions([[left]], [[]], 2) == {0: 0.0}


def test_a_report_escapes_what_the_data_set_says() -> None:
    report = {
        "title": "<b>x</b>",
        "facts": ["mode"],
        "mode": "scratch",
        "classes": ["<script>", "b"],
        "curves": ["loss"],
        "history": [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}],
        "confusion": [[1, 0], [0, 1]],
    }
    made = page(report)
    assert "<script>" not in made
    assert "&lt;script&gt;" in made
    assert "loss: 0.5000 → 0.2500 in 2 epochs" in made
