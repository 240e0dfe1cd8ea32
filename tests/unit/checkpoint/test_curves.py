"""Programs report numbers per step; what cannot be written costs the numbers and nothing else."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from corral.checkpoint.curves import CURVES, CurveWriter
from corral.checkpoint.environment import Surroundings, read_environment


def lines(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / CURVES).read_text().splitlines()]


def test_values_of_a_step_are_one_line(tmp_path: Path) -> None:
    writer = CurveWriter(Surroundings(output=tmp_path, attempt=2))
    writer.log(0, {"loss": 2.5, "lr": 1})
    writer.log(1, {"loss": math.nan})
    first, second = lines(tmp_path)
    assert (first["step"], first["attempt"], first["values"]) == (0, 2, {"loss": 2.5, "lr": 1.0})
    assert second["values"] == {"loss": None}, "JSON has no NaN"


def test_a_number_of_another_library_is_a_number(tmp_path: Path) -> None:
    class Tensor:
        def __float__(self) -> float:
            return 0.25

    CurveWriter(Surroundings(output=tmp_path)).log(3, {"loss": Tensor()})
    assert lines(tmp_path)[0]["values"] == {"loss": 0.25}


def test_only_rank_0_reports_and_without_a_platform_no_rank_does(tmp_path: Path) -> None:
    CurveWriter(Surroundings(output=tmp_path, rank=1, world=2)).log(0, {"loss": 1.0})
    CurveWriter(Surroundings()).log(0, {"loss": 1.0})
    assert not (tmp_path / CURVES).exists()


@pytest.mark.parametrize(
    ("step", "values", "message"),
    [
        (-1, {"loss": 1.0}, "step must be a whole number"),
        (True, {"loss": 1.0}, "step must be a whole number"),
        (0, {}, "at least one value"),
        (0, {"loss": "high"}, "loss must be a number"),
        (0, {"": 1.0}, "1 to 100 characters"),
    ],
)
def test_a_wrong_call_is_refused_on_every_rank(step: int, values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CurveWriter(Surroundings(rank=1, world=2)).log(step, values)


def test_a_directory_that_refuses_ends_the_reports_and_not_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = CurveWriter(Surroundings(output=tmp_path / "gone"))
    writer.log(0, {"loss": 1.0})
    writer.log(1, {"loss": 1.0})
    assert capsys.readouterr().err.count("values are not reported any more") == 1


def test_the_environment_names_the_directory(tmp_path: Path) -> None:
    assert read_environment({"CORRAL_OUTPUT_DIR": str(tmp_path)}).output == tmp_path
