"""`corral init job`: writes a job file from what is in a project folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.jobs.job_options import PROJECT_FILE
from corral.cli.slurm.sbatch_options import Here, NotUnderstood, understood
from corral.cli.terminal import formats
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Terminal, command
from corral.core.names import JOB_NAME
from corral.core.os_errors import placed_reason
from corral.core.quantities import parse_duration

#: Names of training scripts, most likely first.
SCRIPTS = ("train.py", "training.py", "finetune.py", "main.py", "run.py")
#: Libraries that use GPUs, as requirements and as imports name them.
_GPU_NAMES = (
    r"(pytorch|torch|tensorflow|jax|flax|keras|(pytorch[-_])?lightning|transformers|accelerate|deepspeed|diffusers|peft"
    r"|trl|ultralytics|vllm|cupy|paddlepaddle|mxnet|cuda|cudatoolkit)"
)
GPU_LIBRARY = re.compile(rf"{_GPU_NAMES}([-_][a-z0-9]+)*", re.IGNORECASE)
GPU_IMPORTS = re.compile(rf"^\s*(import|from)\s+(\w+\s*,\s*)*{_GPU_NAMES}\b", re.MULTILINE)
#: The name at the beginning of a requirement.
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: What a script with more than one process for each node mentions.
DISTRIBUTED = re.compile(r"init_process_group|DistributedDataParallel|FullyShardedDataParallel")
HYDRA = re.compile(r"^@hydra\.main\b|^from hydra import|^import hydra\b", re.MULTILINE)
#: How the environment of a project is made inside its folder, by the file that describes it.
_ENVIRONMENTS = (
    ("uv.lock", "uv sync"),
    ("poetry.lock", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"),
    ("requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
    ("pyproject.toml", "python3 -m venv .venv && .venv/bin/pip install -e ."),
)
#: Fields of a Slurm script that a job file repeats; the script itself sets the rest.
KEPT = ("nodes", "gpus", "cpus", "memory", "time", "array", "after", "priority")
#: Larger files are no scripts.
MOST_BYTES = 1 << 20


def register(app: typer.Typer) -> None:
    command(
        app,
        "job",
        connects=False,
        examples=["corral init job", "corral init job ~/projects/resnet", "corral init job --print"],
    )(init_job)


def init_job(
    terminal: Terminal,
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="The project folder.")] = Path(),
    show: Annotated[bool, typer.Option("--print", help="Print the file and write nothing.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Write over a file that exists.")] = False,
) -> None:
    """Write corral.job.yaml for a project folder: from a Slurm script or a training script and its requirements.

    `corral submit` and `corral run` without a program use the file."""
    if not directory.is_dir():
        raise WrongUsage(f"DIRECTORY: {directory} is not a folder")
    text = job_text(directory)
    if show:
        terminal.answer({"file": PROJECT_FILE, "text": text}, text.rstrip("\n"))
        return
    target = directory / PROJECT_FILE
    try:
        with target.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise Refused(f"{target} exists already", hint="Add --replace to write over it, or --print.") from error
    except OSError as error:
        raise Refused(f"cannot write {target}: {placed_reason(error)}") from error
    terminal.answer({"file": str(target), "text": text}, f"Wrote {target}. Submit it: corral submit")


def job_text(directory: Path) -> str:
    """The job file for a folder."""
    import yaml

    lines = ["# A job for corral: `corral submit` in this folder. The keys are the flags of `corral submit`."]
    slurm = slurm_script(directory)
    fields = {"name": name_for(directory.resolve().name)}
    if slurm is not None:
        fields |= _of_slurm(slurm, lines)
    else:
        fields |= _of_scripts(directory, lines)
    fields["workdir"] = "."
    return "\n".join(lines) + "\n" + yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1000)


def name_for(text: str) -> str:
    """The name of a folder or script, as a job may be named."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:50]
    return name if JOB_NAME.fullmatch(name) else f"job-of-{name}" if name else "project"


def slurm_script(directory: Path) -> Path | None:
    """The first script with #SBATCH lines."""
    found = [path for pattern in ("*.sbatch", "*.slurm", "*.sh") for path in sorted(directory.glob(pattern))]
    return next((path for path in found if "#SBATCH" in _text(path)), None)


def _of_slurm(path: Path, lines: list[str]) -> dict[str, Any]:
    try:
        batch = understood([path.name], _text(path), Here(directory=str(path.parent.resolve())))
    except NotUnderstood as error:
        raise Refused(f"{path.name}: {error}", hint=f"Write {PROJECT_FILE} by hand; its keys are flags.") from error
    lines.append(f"# From the #SBATCH lines of {path.name}.")
    lines += [f"# {path.name}: {note}." for note in batch.notes]
    if batch.gpu_type:
        lines.append(f"# GPUs of type {batch.gpu_type} in Slurm: `model: [...]` has the names of `corral gpus`.")
    name = {"name": name_for(batch.body["name"])} if batch.body["name"] != path.name else {}
    return {**name, **_kept(batch.body), "command": f"bash {path.name}"}


def _kept(body: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: body[key] for key in KEPT if body.get(key)}
    return kept | ({"time": formats.duration(parse_duration(kept["time"]))} if "time" in kept else {})


def _of_scripts(directory: Path, lines: list[str]) -> dict[str, Any]:
    requirements = _requirements(directory)
    script = training_script(directory)
    text = _text(directory / script) if script else ""
    uses_gpus = any(GPU_LIBRARY.fullmatch(name) for name in requirements) or bool(GPU_IMPORTS.search(text))
    fields: dict[str, Any] = {"gpus": 1 if uses_gpus or not requirements else 0, "time": "1h"}
    if fields["gpus"] == 0:
        lines.append("# The requirements name no library that uses GPUs: set `gpus` if the program needs some.")
    if (directory / ".venv" / "bin" / "python").exists():
        fields["venv"] = ".venv"
    elif made := next((commands for name, commands in _ENVIRONMENTS if (directory / name).exists()), None):
        lines.append(f"# {made}, then add `venv: .venv`.")
    fields["command"] = _command(directory, script, text, lines)
    return fields


def _command(directory: Path, script: str | None, text: str, lines: list[str]) -> str:
    notebook = next((path.name for path in sorted(directory.glob("*.ipynb"))), None)
    if script is None and notebook is not None:
        lines.append("# Runs the notebook as a program; `corral workbench create` opens it in Jupyter.")
        options = '--to notebook --execute --output-dir "$CORRAL_OUTPUT_DIR"'
        return f"jupyter nbconvert {options} {shlex.quote(notebook)}"
    if script is None:
        lines.append("# No training script was found: put your program here.")
        return "nvidia-smi"
    program = "torchrun --nproc-per-node $GPUS_PER_NODE" if DISTRIBUTED.search(text) else "python3"
    command = f"{program} {shlex.quote(script)}"
    if HYDRA.search(text):
        lines.append("# Hydra writes its outputs where `corral files` finds them.")
        command += ' hydra.run.dir="$CORRAL_OUTPUT_DIR"'
    return command


def training_script(directory: Path) -> str | None:
    """The path of the script in the folder, or in a folder of its sources."""
    for pattern in ("*.py", "scripts/*.py", "src/*.py", "src/*/*.py"):
        paths = {path.name: str(path.relative_to(directory)) for path in sorted(directory.glob(pattern))}
        known = [name for name in SCRIPTS if name in paths] or [name for name in paths if "train" in name]
        if known:
            return paths[known[0]]
    return None


def _requirements(directory: Path) -> set[str]:
    """The names of the libraries that the folder's files require."""
    lines = _text(directory / "requirements.txt").splitlines()
    conda = _text(directory / "environment.yml") or _text(directory / "environment.yaml")
    lines += [line.strip()[1:] for line in conda.splitlines() if line.strip().startswith("-")]
    lines += _of_project(_text(directory / "pyproject.toml"))
    found = (_REQUIREMENT.match(line.strip()) for line in lines)
    return {match[0] for match in found if match}


def _of_project(text: str) -> list[str]:
    """The requirements of a pyproject.toml; none of one that is no TOML, which its own tools report."""
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return []
    project, poetry = document.get("project", {}), document.get("tool", {}).get("poetry", {})
    groups = [*project.get("optional-dependencies", {}).values(), *document.get("dependency-groups", {}).values()]
    listed = [
        *project.get("dependencies", ()),
        *(requirement for group in groups for requirement in group if isinstance(requirement, str)),
    ]
    return [*listed, *(name for name in poetry.get("dependencies", {}) if name != "python")]


def _text(path: Path) -> str:
    """The text of a file, or none if it is missing or no text."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
