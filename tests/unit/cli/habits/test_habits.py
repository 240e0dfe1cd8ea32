"""Commands of other tools run corral's commands: every line of the habit table, and the tables of aliases."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import yaml

from corral.cli.habits.aliases import COMMANDS, JOB_VERBS, NOUNS, VERBS, familiar
from corral.cli.habits.habit_group import HabitGroup, suggestion
from tests.unit.cli.runner import COMMAND, corral
from tests.unit.scripts import load_script

COMMANDS_OF_CORRAL: dict[str, Any] = getattr(COMMAND, "commands")  # noqa: B009
habits = load_script("habits_page.py")
TABLES: list[dict[str, Any]] = yaml.safe_load(habits.DATA.read_text(encoding="utf-8"))
ROWS = [(row["typed"], row["runs"]) for table in TABLES for row in table["rows"]]


def resolved(words: list[str]) -> list[str]:
    """The command that corral runs, with the arguments that it gets."""
    found: Any = COMMAND
    path: list[str] = []
    ctx = found.context_class(found, info_name="corral")
    words = familiar(words)
    while isinstance(found, HabitGroup):
        if path and (not words or words[0].startswith("-")) and not found.invoke_without_command:
            words = ["ls", *words]
        elif path and (not words or words[0].startswith("-")):
            break
        name, found, words = found.resolve_command(ctx, words)
        path.append(name)
    return [*path, *words]


@pytest.mark.parametrize(("typed", "runs"), ROWS, ids=[typed for typed, _ in ROWS])
def test_a_habit_runs_the_command(typed: str, runs: str) -> None:
    assert resolved(shlex.split(typed)) == shlex.split(runs)


@pytest.mark.parametrize(("typed", "runs"), ROWS, ids=[typed for typed, _ in ROWS])
def test_a_habit_and_its_command_end_alike(typed: str, runs: str) -> None:
    """Both are parsed and asked of a server that is not there."""
    first, second = corral(*shlex.split(typed)), corral(*shlex.split(runs))
    assert (first.exit_code, first.stdout, first.stderr) == (second.exit_code, second.stdout, second.stderr)


def test_the_page_is_up_to_date() -> None:
    assert habits.PAGE.read_text(encoding="utf-8") == habits.page(TABLES), "run: python scripts/habits_page.py"


def test_every_noun_of_the_table_is_a_command_and_every_group_is_a_noun() -> None:
    assert NOUNS.keys() <= COMMANDS_OF_CORRAL.keys()
    not_nouns = {"analyse", "completion", "config", "inbox", "init", "leader", "shadow", "slurm-compat", "store"}
    groups = {name for name, entry in COMMANDS_OF_CORRAL.items() if isinstance(entry, HabitGroup)}
    assert groups - not_nouns <= NOUNS.keys()


def test_no_alias_hides_a_command_or_means_two_things() -> None:
    spellings = [other for others in NOUNS.values() for other in others]
    assert len(spellings) == len(set(spellings))
    aliases = {*spellings, *COMMANDS}
    assert aliases.isdisjoint(COMMANDS_OF_CORRAL)
    assert {words[0] for words in COMMANDS.values()} <= COMMANDS_OF_CORRAL.keys()
    assert set(JOB_VERBS.values()) <= COMMANDS_OF_CORRAL.keys()


@pytest.mark.parametrize("noun", sorted(name for name in NOUNS))
def test_a_bare_noun_lists_or_asks_for_what_it_needs(noun: str) -> None:
    result = corral(noun)
    # checkpoints and files belong to a job, a licence is one, a what-if has a question; drills and backups are kept by
    # this machine
    others = {"checkpoints": 2, "files": 2, "licence": 2, "whatif": 2, "drill": 1, "backup": 1}
    assert result.exit_code == others.get(noun, 5), result.output


def test_options_before_the_command_and_programs_behind_it_are_left_alone() -> None:
    assert familiar(["-o", "json", "--server", "ps", "ps", "-a"]) == ["-o", "json", "--server", "ps", "jobs", "-a"]
    assert familiar(["submit", "--", "kill", "ps"]) == ["submit", "--", "kill", "ps"]
    assert familiar(["run", "--gpus", "1", "--", "get", "nodes"]) == ["run", "--gpus", "1", "--", "get", "nodes"]
    # a value of an option is no verb
    assert familiar(["jobs", "--state", "run"]) == ["jobs", "--state", "run"]
    assert familiar(["jobs", "--name", "rm", "-a"]) == ["jobs", "--name", "rm", "-a"]
    assert familiar(["jobs", "-o", "json", "stop", "j-1"]) == ["stop", "-o", "json", "j-1"]
    assert familiar(["help", "job", "cancel"]) == ["stop", "--help"]
    assert familiar(["help"]) == ["--help"]
    assert familiar([]) == []
    assert familiar(["--version"]) == ["--version"]
    # without a further word the noun may be the name of a job
    assert familiar(["describe", "queue"]) == ["show", "queue"]
    assert familiar(["delete", "images"]) == ["rm", "images"]


@pytest.mark.parametrize("typed", ["kil", "kill9", "rmm", "stp", "drll", "dril", "relese", "gc", "lose-gp"])
def test_no_suggestion_does_harm(typed: str) -> None:
    groups = [entry for entry in COMMANDS_OF_CORRAL.values() if isinstance(entry, HabitGroup)]
    for known in (COMMANDS_OF_CORRAL, *(group.commands for group in groups)):
        close = suggestion(typed, known)
        assert close not in {"drill", "rm", "stop", "release", "gc", "rm-file", "lose-gpu", "lose-node"}


def test_verbs_stand_for_verbs_of_some_noun() -> None:
    verbs = {verb for entry in COMMANDS_OF_CORRAL.values() if isinstance(entry, HabitGroup) for verb in entry.commands}
    assert {verb for meant in VERBS.values() for verb in meant} <= verbs
