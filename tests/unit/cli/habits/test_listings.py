"""The hint for a missing thing follows the thing, and names a command that exists."""

from __future__ import annotations

import re
from typing import Any

import pytest

from corral.cli.habits import listings
from corral.cli.habits.aliases import familiar
from corral.cli.habits.listings import listing
from tests.unit.cli.runner import COMMAND

EVERY = {**listings._COMMANDS, **listings._OF_OPERATORS}


@pytest.mark.parametrize(
    ("message", "command", "hint"),
    [
        ("there is no volume 'x'", "corral cp", "`corral volume ls` lists them."),
        ("there is no user 'x'", "corral quota set", "Operators list them with `corral user ls`."),
        ("there is no permission group 'x'", "corral permission-group rm", "permission-group ls"),
        ("there is no group 'x'", "corral volume share", "corral group ls"),
        ("there is no alert rule 'x'", "corral alert rule show", "corral alert rules"),
        ("there is no dataset target 'x'", "corral dataset create", "corral target ls"),
        ("there is no job 'x'", "corral show", "corral jobs -a"),
        ("there is no job 'x'", "corral workbench stop", "corral workbench ls"),
        ("job j-3 has no attempt 9", "corral logs", "corral show j-3"),
        ("job j-3 has no 'a.txt' in its output directory", "corral files get", "corral files j-3"),
        ("no defragmentation was started yet", "corral analyse", ""),
    ],
)
def test_the_thing_decides(message: str, command: str, hint: str) -> None:
    found = listing(message, command)
    assert hint in found
    assert bool(found) == bool(hint)


@pytest.mark.parametrize("command", EVERY.values(), ids=str)
def test_the_command_exists(command: str) -> None:
    found: Any = COMMAND
    for word in familiar(command.split()[1:]):
        if not word.startswith("-"):
            found = found.commands[word]
    assert found.params


@pytest.mark.parametrize("noun", EVERY)
def test_lists_of_operators_are_marked(noun: str) -> None:
    """A scientist is not sent to a command that refuses."""
    words = re.sub("^corral ", "", EVERY[noun]).split()
    found: Any = COMMAND
    for word in words:
        if not word.startswith("-"):
            found = found.commands[word]
    if "(operators)" in (found.help or ""):
        assert noun in listings._OF_OPERATORS
