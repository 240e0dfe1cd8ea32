"""The console's rules for names are those of the server, and the committed file is current."""

from __future__ import annotations

import pytest

from tests.unit.scripts import load_script

generator = load_script("console_names.py")


def test_the_committed_file_is_current() -> None:
    rules = generator.written(generator.SOURCE.read_text(encoding="utf-8"))
    assert generator.TARGET.read_text(encoding="utf-8") == rules, "run: make openapi"


def test_a_rule_becomes_a_whole_match() -> None:
    source = '#: Queues.\nQUEUE_NAME = re.compile(r"[a-z-]{1,9}")\n'
    assert generator.written(source).endswith("\n\n/** Queues. */\nexport const QUEUE_NAME = /^[a-z-]{1,9}$/;\n")


def test_a_rule_that_the_generator_cannot_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="write each rule as"):
        generator.written('QUEUE_NAME = re.compile(r"[a-z-]{1,9}")\n')
