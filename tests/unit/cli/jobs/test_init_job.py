"""`corral init job` asks for a GPU unless the project's files say that it needs none."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from corral.cli.jobs.submission.init_job import job_text


def fields_of(directory: Path) -> dict[str, object]:
    found = yaml.safe_load(job_text(directory))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("file", "text", "gpus"),
    [
        ("requirements.txt", "numpy\ntorch>=2\n", 1),
        ("requirements.txt", "jax[cuda12]\n", 1),
        ("requirements.txt", "# torch is not used\nnumpy\npandas\n", 0),
        ("requirements.txt", "-r other.txt\n", 1),
        ("pyproject.toml", '[project]\nname = "torch-notes"\ndependencies = ["numpy", "torch>=2"]\n', 1),
        ("pyproject.toml", '[project]\nname = "torch-notes"\ndependencies = ["numpy"]\n', 0),
        ("pyproject.toml", '[project]\nname = "x"\n[project.optional-dependencies]\ngpu = ["cupy-cuda12x"]\n', 1),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.11"\npytorch-lightning = "*"\n', 1),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - pytorch::pytorch\n", 1),
        ("environment.yml", "dependencies:\n  - numpy\n", 0),
        ("train.py", "import numpy, torch\n", 1),
        ("train.py", "import csv\n", 1),
        ("README.md", "nothing that says what is needed\n", 1),
    ],
)
def test_gpus_of_a_project(tmp_path: Path, file: str, text: str, gpus: int) -> None:
    (tmp_path / file).write_text(text)
    assert fields_of(tmp_path)["gpus"] == gpus


def test_a_script_that_uses_gpus_counts_more_than_its_requirements(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n")
    (tmp_path / "train.py").write_text("def main():\n    import torch\n")
    assert fields_of(tmp_path)["gpus"] == 1


def test_a_project_file_that_is_no_toml_is_left_to_its_own_tools(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert fields_of(tmp_path)["gpus"] == 1


@pytest.mark.parametrize(
    ("files", "command", "note"),
    [
        ({"uv.lock": "", "main.py": "import torch\n"}, "python3 main.py", "# uv sync, then add `venv: .venv`."),
        ({"poetry.lock": "", "train.py": ""}, "python3 train.py", "poetry install, then add `venv: .venv`."),
        ({"src/pkg/train.py": "import torch\n"}, "python3 src/pkg/train.py", ""),
        ({"scripts/finetune.py": ""}, "python3 scripts/finetune.py", ""),
        (
            {"train.py": "import hydra\n\n@hydra.main(config_name='x')\ndef main(cfg): ...\n"},
            'python3 train.py hydra.run.dir="$CORRAL_OUTPUT_DIR"',
            "# Hydra writes its outputs where `corral files` finds them.",
        ),
        (
            {"my study.ipynb": "{}"},
            "jupyter nbconvert --to notebook --execute --output-dir \"$CORRAL_OUTPUT_DIR\" 'my study.ipynb'",
            "# Runs the notebook as a program",
        ),
    ],
)
def test_shapes_of_projects(tmp_path: Path, files: dict[str, str], command: str, note: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    text = job_text(tmp_path)
    assert yaml.safe_load(text)["command"] == command
    assert note in text


def test_the_name_and_the_time_of_a_slurm_script_are_kept(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH -J resnet -t 2:00:00\ntrue\n")
    fields = yaml.safe_load(job_text(tmp_path))
    assert (fields["name"], fields["time"], fields["command"]) == ("resnet", "2h", "bash job.sh")
