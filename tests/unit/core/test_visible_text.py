"""Texts of users are shown literally, and cannot control a terminal."""

from __future__ import annotations

import json

import pytest

from corral.core.visible_text import visible, visible_json, visible_line, visible_log

ACTING = [*range(0x20), 0x7F, *range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]


@pytest.mark.parametrize("code", ACTING, ids=hex)
def test_nothing_acts(code: int) -> None:
    text = f"a{chr(code)}b"
    assert chr(code) not in visible_line(text)
    assert visible_line(text).isprintable()
    if chr(code) not in "\n\t":
        assert visible(text) == visible_line(text)


def test_harmless_characters_stay() -> None:
    for text in ("plain", "Grüße, 你好", "😀 ok", "a\tb\nc", "עברית"):
        assert visible(text) == text


def test_symbols_say_what_was_there() -> None:
    assert visible("\x1b[31mred\x07\x7f") == "␛[31mred␇␡"
    assert visible("\x9b2J \u202egpj.exe") == "\\u009b2J \\u202egpj.exe"
    assert visible_line("one\ntwo\t") == "one␊two␉"
    assert visible_log("10%\r20%\r\ndone") == "10%\n20%\ndone"


def test_json_keeps_its_meaning() -> None:
    value = {"name": "a\x1b\x9b\u202e\x7fb", "list": ["é", "\n"]}
    shown = visible_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(shown) == value
    assert "é" in shown
    assert not any(mark in shown for mark in "\x1b\x9b\u202e\x7f")
