"""Presets: which templates and values are right, and that values arrive as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.errors import Forbidden, Invalid, NotFound, Taken
from corral.control.jobs.presets import (
    Given,
    Parameter,
    ParameterType,
    Preset,
    add,
    problems_of,
    remove,
    render,
    value_of,
)
from tests.unit.control.world import ANN, ROOT, Desk
from tests.unit.searching import DEAR

INT, FLOAT, BOOL = ParameterType.INT, ParameterType.FLOAT, ParameterType.BOOL
CHOICE, TEXT, PATH = ParameterType.CHOICE, ParameterType.TEXT, ParameterType.PATH


def parameter(kind: ParameterType, **fields: Any) -> Parameter:
    return Parameter(name="it", type=kind, **fields)


@pytest.mark.parametrize(
    ("kind", "fields", "given", "value"),
    [
        (INT, {}, 5, "5"),
        (INT, {}, "5", "5"),
        (INT, {}, 5.0, "5"),
        (INT, {"minimum": 1, "maximum": 5}, 5, "5"),
        (INT, {}, -(2**53), str(-(2**53))),
        (FLOAT, {}, 0.1, "0.1"),
        (FLOAT, {}, "1e-3", "0.001"),
        (FLOAT, {}, 2, "2"),
        (BOOL, {}, True, "true"),
        (BOOL, {}, "False", "false"),
        (CHOICE, {"choices": ("a", "16")}, 16, "16"),
        (TEXT, {}, "", ""),
        (TEXT, {}, "a b; $(c)", "a b; $(c)"),
        (PATH, {}, "/data/set", "/data/set"),
        (PATH, {"default": ""}, "", ""),
    ],
)
def test_values(kind: ParameterType, fields: dict[str, Any], given: Given, value: str) -> None:
    assert value_of(parameter(kind, **fields), given) == value


@pytest.mark.parametrize(
    ("kind", "fields", "given", "words"),
    [
        (INT, {}, "five", "whole number"),
        (INT, {}, 1.5, "whole number"),
        (INT, {}, True, "whole number"),
        (INT, {"minimum": 1}, 0, "at least 1"),
        (INT, {"maximum": 9}, 10, "at most 9"),
        (INT, {}, 2**60, "not so large"),
        (INT, {}, "9" * 6000, "whole number"),
        (FLOAT, {}, "nan", "finite"),
        (FLOAT, {}, "inf", "finite"),
        (FLOAT, {}, 10**400, "number"),
        (BOOL, {}, 1, "true or false"),
        (BOOL, {}, "yes", "true or false"),
        (CHOICE, {"choices": ("a", "b")}, "c", "one of a, b"),
        (TEXT, {}, "a\x00b", "valid text"),
        (TEXT, {}, "\ud800", "valid text"),
        (TEXT, {}, "x" * 5000, "at most"),
        (PATH, {}, "relative", "absolute"),
        (PATH, {}, "", "absolute"),
    ],
)
def test_wrong_values(kind: ParameterType, fields: dict[str, Any], given: Given, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        value_of(parameter(kind, **fields), given)


def preset(*parameters: Parameter, command: tuple[str, ...] = ("run", "{it}"), **fields: Any) -> Preset:
    return Preset(name="mine", parameters=parameters, command=command, **fields)


@pytest.mark.parametrize(
    ("made", "place", "words"),
    [
        (Preset(name="a b", command=("x",)), ("name",), "not allowed"),
        (preset(command=()), ("command",), "program"),
        (preset(command=("x", "{missing}")), ("command", 1), "no parameter 'missing'"),
        (preset(command=("x", "{")), ("command", 1), "single '{'"),
        (preset(command=("x", "}")), ("command", 1), "single '}'"),
        (preset(command=("x",), env={"A": "{missing}"}), ("env", "A"), "no parameter 'missing'"),
        (preset(command=("x",), env={"A": "{gpu_list}"}), ("env", "A"), "no parameter 'gpu_list'"),
        (preset(parameter(TEXT), command=("x",)), ("parameters", 0, "name"), "neither the command nor the env"),
        (preset(parameter(TEXT), parameter(TEXT)), ("parameters", 1, "name"), "two parameters"),
        (preset(Parameter(name="Big", type=TEXT), command=("{Big}",)), ("parameters", 0, "name"), "not allowed"),
        (
            preset(Parameter(name="gpu_list", type=TEXT), command=("{gpu_list}",)),
            ("parameters", 0, "name"),
            "when a job starts",
        ),
        (preset(parameter(CHOICE)), ("parameters", 0, "choices"), "needs some"),
        (preset(parameter(CHOICE, choices=("a", "a"))), ("parameters", 0, "choices"), "twice"),
        (preset(parameter(INT, choices=("a",))), ("parameters", 0, "choices"), "only a choice"),
        (preset(parameter(TEXT, minimum=1)), ("parameters", 0, "min"), "only int and float"),
        (preset(parameter(INT, minimum=2, maximum=1)), ("parameters", 0, "min"), "above max"),
        (preset(parameter(INT, maximum=1e300)), ("parameters", 0, "max"), "too large"),
        (preset(parameter(INT, default="x")), ("parameters", 0, "default"), "whole number"),
    ],
)
def test_wrong_templates(made: Preset, place: tuple[str | int, ...], words: str) -> None:
    found = dict(problems_of(made))
    assert words in found[place]


def test_a_template_is_filled_in_one_pass() -> None:
    made = preset(
        parameter(TEXT),
        Parameter(name="other", type=TEXT, default="o"),
        command=("run", "--it={it}", "{it}{other}", "{{it}}", "{gpu_count}"),
        env={"WHERE": "/data/{other}"},
    )
    assert list(problems_of(made)) == []
    rendered = render(made, {"it": "{other} $(x) {{"})
    assert rendered.command == ("run", "--it={other} $(x) {{", "{other} $(x) {{o", "{it}", "{gpu_count}")
    assert rendered.env == {"WHERE": "/data/o"}
    assert rendered.parameters == {"it": "{other} $(x) {{", "other": "o"}


@DEAR
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200))
def test_any_text_arrives_as_one_argument(value: str) -> None:
    assert render(preset(parameter(TEXT)), {"it": value}).command == ("run", value)


def test_missing_and_unknown_parameters_are_named() -> None:
    made = preset(parameter(INT, minimum=1))
    for values, field, words in (
        ({}, "parameters.it", "needs the parameter 'it'"),
        ({"it": 0}, "parameters.it", "it must be at least 1"),
        ({"it": 1, "more": 2}, "parameters.more", "has no parameter 'more'; it has: it"),
    ):
        with pytest.raises(Invalid, match=words) as refused:
            render(made, values)
        assert refused.value.field == field


def test_operators_keep_presets(desk: Desk) -> None:
    made = preset(parameter(TEXT))
    for use_case in (
        lambda: desk.do(add, ANN, made, "…", shipped=()),
        lambda: desk.do(remove, ANN, "mine", shipped=()),
    ):
        with pytest.raises(Forbidden):
            use_case()
    with pytest.raises(Taken, match="comes with corral"):
        desk.do(add, ROOT, made, "…", shipped={"mine"})
    desk.do(add, ROOT, made, "first", shipped=())
    with pytest.raises(Taken, match="already"):
        desk.do(add, ROOT, made, "second", shipped=())
    desk.do(add, ROOT, made, "second", shipped=(), replace=True)
    with desk.store.read() as tables:
        assert [record.yaml for record in tables.images.presets()] == ["second"]
    with pytest.raises(Invalid, match="cannot be removed"):
        desk.do(remove, ROOT, "mine", shipped={"mine"})
    desk.do(remove, ROOT, "mine", shipped=())
    with pytest.raises(NotFound):
        desk.do(remove, ROOT, "mine", shipped=())
