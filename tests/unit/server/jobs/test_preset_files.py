"""Presets as files: what is wrong is named by line and key, and a submission gets what it does not say itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.control.errors import Invalid
from corral.control.jobs.jobs import kind_of
from corral.server.jobs.drafts import draft_of
from corral.server.jobs.preset_files import KnownPreset, fill, read_preset, shipped_presets
from corral.server.schemas.jobs.job_bodies import JobCreate
from corral.server.settings.config_file import ConfigError
from corral.server.settings.settings import Settings

GOOD = """\
name: mine
parameters:
  - {name: size, type: choice, choices: [8, 16], default: 8}
  - {name: where, type: path}
request: {gpus: 2, memory: 4GiB, time: 1h}
command: [python, train.py, "--size={size}", "{where}"]
env: {MODE: "m-{size}"}
"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "preset:1: name: is required"),
        ("- a list", "preset:1: must be a mapping of keys such as `name:`"),
        ("name: [", "is not valid YAML"),
        (GOOD.replace("type: path", "type: file"), "preset:4: parameters[1].type: must be one of"),
        (GOOD.replace("default: 8", "default: 9"), "preset:3: parameters[0].default: must be one of 8, 16, got '9'"),
        (GOOD.replace("{where}", "{there}"), "preset:6: command[3]: there is no parameter 'there'"),
        (GOOD.replace("gpus: 2", "gpus: 1.5"), "preset:5: request.gpus: "),
        (GOOD.replace("memory: 4GiB", "memory: much"), "preset:5: request.memory: "),
        (GOOD.replace("time: 1h", "time: 0"), "preset:5: request.time: "),
        (GOOD + "colour: red\n", "preset:8: colour: unknown key; allowed: command"),
        (GOOD.replace("MODE", "A B"), "preset:7: env: 'A B' is not a name of an environment variable"),
        (GOOD.replace("name: mine", "name: mine\nname: yours"), "preset:2: name: is given twice"),
        (GOOD.replace('[python, train.py, "--size={size}", "{where}"]', "python train.py"), "command: must be a list"),
        (GOOD.replace("name: mine", "name: &a mine\ntitle: *a"), "aliases"),
    ],
)
def test_wrong_files(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_preset(text)
    assert problem in str(refused.value)


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        read_preset(GOOD.replace("default: 8", "default: 9").replace("{where}", "{there}"))
    assert [problem.line for problem in refused.value.problems] == [3, 6, 4]


def test_the_shipped_ones_can_be_read() -> None:
    assert {"classification", "detection"} <= shipped_presets().keys()
    for name, known in shipped_presets().items():
        assert known.preset.name == name
        assert known.preset.title
        assert all(parameter.help for parameter in known.preset.parameters)
        required = {parameter.name for parameter in known.preset.parameters if parameter.default is None}
        assert required <= {"dataset"}, "everything but the data set has a default"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def filled(settings: Settings, **fields: Any) -> JobCreate:
    known = {"mine": KnownPreset(preset=read_preset(GOOD), yaml=GOOD)}
    return fill(known, JobCreate.model_validate({"preset": "mine", "parameters": {"where": "/d"}, **fields}), settings)


def test_a_submission_gets_what_it_does_not_say(settings: Settings) -> None:
    body = filled(settings)
    assert body.command == ["python", "train.py", "--size=8", "/d"]
    assert (body.gpus, body.memory, body.time, body.env) == (2, 4 * 2**30, 3600, {"MODE": "m-8"})
    draft = draft_of(body)
    assert kind_of(draft) == "preset"
    assert draft.spec.preset == "mine"
    assert draft.spec.parameters == {"size": "8", "where": "/d"}


def test_and_keeps_what_it_says(settings: Settings) -> None:
    body = filled(settings, gpus=0, time="2h", env={"MODE": "own", "X": "y"})
    assert (body.gpus, body.memory, body.time) == (0, 4 * 2**30, 7200)
    assert body.env == {"MODE": "own", "X": "y"}


def test_an_elastic_submission_keeps_the_memory_of_the_preset(settings: Settings) -> None:
    body = filled(settings, min_gpus=1, max_gpus=4)
    assert (body.gpus, body.memory) == (0, 4 * 2**30)
    assert (draft_of(body).min_gpus, draft_of(body).max_gpus) == (1, 4)


def test_a_package_is_the_whole_size(settings: Settings) -> None:
    body = filled(settings, package="small")
    assert (body.gpus, body.memory) == (0, 0)
    assert draft_of(body).package == "small"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"preset": "yours"}, "preset"),
        ({"command": ["true"]}, "command"),
        ({"kind": "training"}, "kind"),
        ({"parameters": {"where": "/d", "size": 9}}, "parameters.size"),
        ({"parameters": {}}, "parameters.where"),
        ({"preset": None}, "parameters"),
    ],
)
def test_wrong_submissions(settings: Settings, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        filled(settings, **fields)
    assert refused.value.field == field
