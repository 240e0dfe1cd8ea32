"""Presets as files: reading, listing, and applying them to the body of a submission.

`corral.control.jobs.presets` decides what a preset may contain and how its parameters are rendered.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError

from corral.checkpoint.slim import install_slim
from corral.control.errors import Invalid, NotFound, about_item
from corral.control.jobs.preset_assets import mounts_of
from corral.control.jobs.presets import Preset, problems_of, render
from corral.control.ports import Transaction
from corral.control.records import PresetAssetRecord, PresetRecord
from corral.presets.shipped import install_trainings, templates
from corral.server.http.context import ServerContext
from corral.server.http.validation import Location, dotted, findings
from corral.server.schemas.jobs.job_bodies import JobCreate, MountBody
from corral.server.schemas.jobs.presets import PresetFile, preset_of
from corral.server.settings.config_file import ConfigError, ConfigProblem, ConfigTree, parse_config
from corral.server.settings.settings import Settings

log = logging.getLogger("corral.server")

LIKE = "keys such as `name:` and `command:`"
#: A submission with one of these fields has a number of GPUs of its own.
_ELASTIC = frozenset({"min_gpus", "max_gpus"})


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownPreset:
    preset: Preset
    yaml: str
    #: None for built-in presets
    record: PresetRecord | None = None


def read_preset(text: str, name: str = "preset") -> Preset:
    """The preset in a YAML text. Raises ConfigError with all errors, by line and key."""
    tree = parse_config(text, name, like=LIKE)
    try:
        file = PresetFile.model_validate(tree.values)
    except ValidationError as error:
        found = findings(error.errors(), PresetFile)
        raise ConfigError([_problem(tree, each.location, each.message) for each in found]) from None
    preset = preset_of(file)
    wrong = [_problem(tree, place, message) for place, message in problems_of(preset)]
    if wrong:
        raise ConfigError(wrong)
    return preset


def _problem(tree: ConfigTree, place: Location, message: str) -> ConfigProblem:
    return ConfigProblem(origin=tree.origin(place), key=dotted(place), message=message)


# ------------------------------------------------------------------------------------------------ list


@cache
def shipped_presets() -> Mapping[str, KnownPreset]:
    read = (KnownPreset(preset=read_preset(text, name), yaml=text) for name, text in templates().items())
    return {known.preset.name: known for known in read}


def install_helpers(settings: Settings) -> None:
    """Install the modules that programs import from the platform where every job finds them."""
    install_slim(settings.helper_path)
    install_trainings(settings.helper_path)


def load_presets(tables: Transaction) -> dict[str, KnownPreset]:
    """Built-in presets and those that operators have added, by name."""
    known = dict(shipped_presets())
    for record in tables.images.presets():
        try:
            preset = read_preset(record.yaml, record.name)
        except ConfigError as error:
            # An earlier version of corral accepted it: a preset that cannot be read any more must not hide the others.
            log.warning("preset %s is left out: %s", record.name, error)
            continue
        known.setdefault(record.name, KnownPreset(preset=preset, yaml=record.yaml, record=record))
    return known


def existing_preset(known: Mapping[str, KnownPreset], name: str) -> KnownPreset:
    found = known.get(name)
    if found is None:
        raise NotFound(f"there is no preset {name!r}", field="preset")
    return found


# ------------------------------------------------------------------------------------------------ submissions


async def filled(context: ServerContext, bodies: Sequence[JobCreate]) -> list[JobCreate]:
    """The submissions with the fields of their presets."""
    if all(body.preset is None and body.parameters is None for body in bodies):
        return list(bodies)
    known, assets = await context.read(_known_and_assets)
    whole = []
    for number, body in enumerate(bodies):
        with about_item(number):
            whole.append(fill(known, body, context.settings, assets))
    return whole


def _known_and_assets(tables: Transaction) -> tuple[dict[str, KnownPreset], list[PresetAssetRecord]]:
    return load_presets(tables), tables.images.preset_assets()


def fill(
    known: Mapping[str, KnownPreset], body: JobCreate, settings: Settings, assets: Sequence[PresetAssetRecord] = ()
) -> JobCreate:
    if body.preset is None:
        if body.parameters is not None:
            raise Invalid("parameters go with a preset: name one", field="parameters")
        return body
    if body.preset not in known:
        raise Invalid(
            f"there is no preset {body.preset!r}; there are: {', '.join(sorted(known))}",
            field="preset",
            known=sorted(known),
        )
    for field, given in (("command", body.command), ("kind", body.kind)):
        if given:
            raise Invalid(f"preset {body.preset} says it already: leave {field} out", field=field)
    preset = known[body.preset].preset
    rendered = render(preset, body.parameters or {}, assets)
    env = {**rendered.env, **(body.env or {})}
    if known[body.preset].record is None and not settings.fault_tolerance.enable_checkpointing:
        # With checkpoints every job has the path of the helper in its environment; the training programs are beside it.
        env["PYTHONPATH"] = ":".join(filter(None, (str(settings.helper_path), env.get("PYTHONPATH"))))
    brought: dict[str, Any] = {"command": list(rendered.command), "env": env, "parameters": dict(rendered.parameters)}
    mounts = [MountBody(source=source, path=path, mode="ro") for source, path in mounts_of(rendered.assets)]
    if mounts:
        brought["mounts"] = [*(body.mounts or ()), *mounts]
    return body.model_copy(update={**_size(preset, body), **brought})


def _size(preset: Preset, body: JobCreate) -> dict[str, Any]:
    """Fields of the preset that the submission does not set."""
    offered: dict[str, Any] = {"time": preset.time_limit_seconds}
    if "package" not in body.model_fields_set:
        offered |= {"cpus": preset.cpus, "memory": preset.memory_bytes}
        if not _ELASTIC & body.model_fields_set:
            offered["gpus"] = preset.gpus
    if not {"image", "venv"} & body.model_fields_set:
        offered |= {"image": preset.image, "venv": preset.venv}
    return {name: value for name, value in offered.items() if value and name not in body.model_fields_set}
