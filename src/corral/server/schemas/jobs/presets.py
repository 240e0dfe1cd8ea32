"""API schemas: presets and in files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.jobs.presets import Parameter, ParameterType, Preset
from corral.control.records import PresetRecord
from corral.server.schemas.base import Body, Duration, Label, Number, Size, Text, View, number, rfc3339
from corral.server.schemas.jobs.job_bodies import Cpus, Directory, Environment, Gpus, ParameterValue, ProcessText

Name = Annotated[Text, Field(min_length=1, max_length=63)]
Help = Annotated[Text, Field(max_length=1000)]
Choice = int | float | Annotated[Text, Field(max_length=1000)]


class ParameterFile(Body):
    name: Name
    type: Literal["choice", "int", "float", "bool", "text", "path", "model", "dataset"]
    default: ParameterValue | None = None
    choices: Annotated[list[Choice], Field(max_length=1000)] = Field(default_factory=list)
    min: float | None = None
    max: float | None = None
    help: Help = ""


class RequestFile(Body):
    """Default values for the preset's jobs."""

    gpus: Gpus = 0
    cpus: Cpus = 0
    memory: Size = 0
    time: Annotated[Duration, Field(gt=0)] | None = None
    image: Annotated[Text, Field(min_length=1, max_length=512)] | None = None
    venv: Directory | None = None


class PresetFile(Body):
    """A preset as operators write it."""

    name: Name
    title: Annotated[Text, Field(max_length=200)] = ""
    description: Annotated[Text, Field(max_length=4000)] = ""
    parameters: Annotated[list[ParameterFile], Field(max_length=64)] = Field(default_factory=list)
    request: RequestFile = RequestFile()
    command: Annotated[list[ProcessText], Field(min_length=1, max_length=1024)]
    env: Environment = Field(default_factory=dict)


class PresetCreate(Body):
    yaml: Annotated[Text, Field(min_length=1, max_length=262_144)] = Field(description="The template, as a YAML file.")
    replace: bool = Field(default=False, description="Replace a preset of the same name.")


class PresetRun(Body):
    name: Label | None = Field(default=None, description="Name of the job.")
    parameters: Annotated[dict[Label, ParameterValue], Field(max_length=64)] = Field(default_factory=dict)
    overrides: dict[Label, Any] = Field(
        default_factory=dict, description="Other fields of the job: gpus, time, queue, env and so on."
    )


class ParameterView(View):
    name: str
    type: ParameterType
    default: bool | int | float | str | None = Field(description="Null: the parameter is required.")
    choices: list[str]
    min: Number | None
    max: Number | None
    help: str


class PresetView(View):
    name: str
    title: str
    description: str
    parameters: list[ParameterView]
    gpus: Number = Field(description="This field and the next ones are defaults for the preset's jobs.")
    cpus: Number
    memory_bytes: int
    time_limit_seconds: Number | None
    image: str | None
    venv: str | None
    command: list[str]
    env: dict[str, str]
    shipped: bool = Field(description="The preset is part of corral.")
    created_by: str | None
    created_at: str | None
    yaml: str | None = Field(default=None, description="The YAML file; only set for a single preset.")


def preset_of(file: PresetFile) -> Preset:
    return Preset(
        name=file.name,
        title=file.title,
        description=file.description,
        parameters=tuple(
            Parameter(
                name=each.name,
                type=ParameterType(each.type),
                default=each.default,
                choices=tuple(str(choice) for choice in each.choices),
                minimum=each.min,
                maximum=each.max,
                help=each.help,
            )
            for each in file.parameters
        ),
        command=tuple(file.command),
        env=file.env,
        gpus=file.request.gpus,
        cpus=file.request.cpus,
        memory_bytes=file.request.memory,
        time_limit_seconds=file.request.time,
        image=file.request.image,
        venv=file.request.venv,
    )


def preset_view(preset: Preset, record: PresetRecord | None, yaml: str | None = None) -> PresetView:
    return PresetView(
        name=preset.name,
        title=preset.title,
        description=preset.description,
        parameters=[_parameter_view(parameter) for parameter in preset.parameters],
        gpus=number(preset.gpus),
        cpus=number(preset.cpus),
        memory_bytes=preset.memory_bytes,
        time_limit_seconds=None if preset.time_limit_seconds is None else number(preset.time_limit_seconds),
        image=preset.image,
        venv=preset.venv,
        command=list(preset.command),
        env=dict(preset.env),
        shipped=record is None,
        created_by=record.created_by if record is not None else None,
        created_at=rfc3339(record.created_at) if record is not None else None,
        yaml=yaml,
    )


def _parameter_view(parameter: Parameter) -> ParameterView:
    return ParameterView(
        name=parameter.name,
        type=parameter.type,
        default=parameter.default,
        choices=list(parameter.choices),
        min=None if parameter.minimum is None else number(parameter.minimum),
        max=None if parameter.maximum is None else number(parameter.maximum),
        help=parameter.help,
    )
