"""`corral preset`: list, run and add presets, which are trainings that are ready to run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.jobs.job_request import flag_of, request_body, with_job_options
from corral.cli.jobs.job_texts import submitted
from corral.cli.jobs.submission.submit import wait_for_end
from corral.cli.terminal import formats
from corral.cli.terminal.arguments import pairs
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.client.http.errors import ApiProblem
from corral.core.jobs.field_types import JobCommand

if TYPE_CHECKING:
    from corral.client.views import ParameterView, PresetView

app = typer.Typer(help="Trainings that are ready to run, with parameters.", no_args_is_help=True)

PresetArgument = Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name.")]
_LINE = re.compile(r"line (\d+): (.*)", re.DOTALL)


@command(app, "ls", examples=["corral preset ls", "corral preset ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the presets."""
    with terminal.client() as client:
        found = list(client.presets.list())
    terminal.table(
        ("NAME", "TITLE~", "PARAMETERS~", "FROM"),
        found,
        lambda view: (
            view["name"],
            view["title"],
            formats.listed([parameter["name"] for parameter in view["parameters"]]),
            "corral" if view["shipped"] else view["created_by"] or formats.NOTHING,
        ),
        empty="No presets.",
    )


@command(app, "show", examples=["corral preset show classification"])
def show(
    terminal: Terminal,
    preset: PresetArgument,
    yaml: Annotated[bool, typer.Option("--yaml", help="As YAML, to start your own preset from.")] = False,
) -> None:
    """Show a preset with its parameters."""
    with terminal.client() as client:
        view = client.presets.get(preset)
    if yaml and not terminal.as_json:
        terminal.raw(view.get("yaml") or "")
        return
    terminal.facts(view, _facts(view))
    if not terminal.as_json:
        terminal.say("")
        terminal.table(
            ("PARAMETER", "TYPE", "DEFAULT~", "ALLOWED~", "DESCRIPTION~"),
            view["parameters"],
            lambda parameter: (
                parameter["name"],
                parameter["type"],
                "(must be given)" if parameter["default"] is None else _text(parameter["default"]),
                _allowed(parameter),
                parameter["help"],
            ),
            empty="No parameters.",
        )


@command(
    app,
    "run",
    examples=[
        "corral preset run classification",
        "corral preset run classification -p model=mlp-deep -p epochs=30 --name first-model --wait",
        "corral preset run detection -p precision=bf16 --gpus 1 --time 30m",
        "corral preset run classification -p mode=fine-tune -p base=/data/model.json --gpus 0",
    ],
)
@with_job_options(JobCommand.PRESET_RUN)
def run(
    terminal: Terminal,
    preset: PresetArgument,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--param", metavar="NAME=VALUE", help="A parameter; repeatable.")
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job's end and exit with its exit code.")] = False,
    **typed: Any,
) -> None:
    """Run a preset as a job. Options that are not given have the preset's values."""
    parameters = pairs("--param", parameter) if parameter else None
    overrides = request_body(JobCommand.PRESET_RUN, typed)
    name = overrides.pop("name", None)
    with terminal.client() as client:
        try:
            job = client.presets.run(preset, parameters, name=name, overrides=overrides)
        except ApiProblem as error:
            raise _with_flags(error) from error
        if wait:
            wait_for_end(terminal, client, [job])
        else:
            terminal.answer(job, submitted(job))


@command(app, "add", examples=["corral preset add -f resnet.yaml", "corral preset add -f resnet.yaml --replace"])
def add(
    terminal: Terminal,
    file: Annotated[Path, typer.Option("-f", "--file", metavar="FILE", help="The template, in YAML.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace a preset of the same name.")] = False,
) -> None:
    """Add a preset of your own (operators)."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise WrongUsage(f"cannot read {file}: {reason}") from error
    with terminal.client() as client:
        try:
            view = client.presets.add(text, replace=replace)
        except ApiProblem as error:
            raise _in_the_file(error, file) from error
    terminal.answer(view, f"Added preset {view['name']}. Run it: corral preset run {view['name']}")


@command(app, "rm", examples=["corral preset rm resnet"])
def rm(
    terminal: Terminal,
    presets: Annotated[list[str], typer.Argument(metavar="PRESET", help="One or more names.")],
    yes: YesOption = False,
) -> None:
    """Remove presets (operators). Their jobs are not changed."""
    terminal.confirm(f"Remove {formats.count(len(presets), 'preset')}: {formats.listed(presets)}?", assume_yes=yes)
    with terminal.client() as client:
        for preset in presets:
            client.presets.remove(preset)
    terminal.answer({"deleted": presets}, f"Removed {formats.listed(presets)}")


def _facts(view: PresetView) -> list[tuple[str, str]]:
    return [
        ("Name", view["name"]),
        ("Title", view["title"]),
        ("About", view["description"]),
        ("From", "corral" if view["shipped"] else view["created_by"] or ""),
        ("GPUs", formats.number(view["gpus"])),
        ("CPUs", formats.number(view["cpus"]) if view["cpus"] else ""),
        ("Memory", formats.size(view["memory_bytes"]) if view["memory_bytes"] else ""),
        ("Time", formats.duration(view["time_limit_seconds"]) if view["time_limit_seconds"] else ""),
        ("Image", view["image"] or ""),
        ("Environment", view["venv"] or ""),
        ("Command", " ".join(view["command"])),
        ("Env", formats.listed([f"{key}={value}" for key, value in view["env"].items()]) if view["env"] else ""),
    ]


def _allowed(parameter: ParameterView) -> str:
    if parameter["choices"]:
        return ", ".join(parameter["choices"])
    low, high = parameter["min"], parameter["max"]
    if low is None and high is None:
        return formats.NOTHING
    return f"{'' if low is None else low}…{'' if high is None else high}"


def _text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or formats.NOTHING


def _with_flags(error: ApiProblem) -> ApiProblem:
    """The server's error with flags instead of field names."""
    named = []
    for field, message in error.field_errors:
        place = field
        if field.startswith("parameters."):
            place = f"-p {field.removeprefix('parameters.')}"
        elif field != "preset":
            place = flag_of(field.removeprefix("overrides."))
        named.append({"field": place, "message": message})
    return type(error)(error.status, {**error.problem, "errors": named}) if named else error


def _in_the_file(error: ApiProblem, file: Path) -> ApiProblem:
    """The server's error with the name of the file before the line numbers."""
    named = []
    for field, message in error.field_errors:
        match = _LINE.fullmatch(message)
        named.append({"field": f"{file}:{match[1]}" if match else field, "message": match[2] if match else message})
    return type(error)(error.status, {**error.problem, "errors": named}) if named else error
