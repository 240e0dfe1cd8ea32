"""Help is quick, complete and shows how it is done; the reference says the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from corral.cli.command_table import PLACES
from corral.cli.habits.aliases import VALUED_OPTIONS
from corral.cli.main import part_for
from corral.cli.terminal.reference import reference
from tests.unit.cli.runner import COMMAND, corral
from tests.unit.client.scripted_server import as_json, scripted
from tests.unit.scripts import load_script

REFERENCE = Path(__file__).parents[4] / "docs" / "reference" / "cli.md"
HEAVY = ("httpx", "fastapi", "sqlalchemy", "pydantic", "rich", "yaml", "psutil", "corral.server", "corral.stores")


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, found in group.commands.items():
        yield (*path, name), found
        if hasattr(found, "commands"):
            yield from commands(found, (*path, name))


ALL = dict(commands(COMMAND))
ONLY_GROUPS = {
    ("leader",),
    ("slurm-compat",),
    ("token",),
    ("user",),
    ("quota",),
    ("pool",),
    ("reservation",),
    ("maintenance",),
    ("group",),
    ("flavor",),
    ("package",),
    ("config",),
    ("drill",),
    ("health",),
    ("completion",),
    ("init",),
    ("key",),
    ("permission-group",),
    ("provider",),
    ("licence",),
    ("workbench",),
    ("alert", "rule"),
    ("channel",),
    ("image",),
    ("files",),
    ("preset",),
    ("registry",),
    ("app",),
    ("secret",),
    ("volume",),
    ("object-store",),
    ("dataset",),
    ("target",),
    ("init",),
    ("backup",),
    ("store",),
    ("budget",),
    ("budget", "price"),
}


LOOK_ALIKES = {("slurm-compat", name) for name in ("sbatch", "squeue", "scancel", "sinfo", "sacct")}


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_explains_itself_with_examples_that_name_it(path: tuple[str, ...]) -> None:
    result = corral(*path, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: corral {' '.join(path)} ")
    if path in ONLY_GROUPS:
        return
    examples = result.stdout.partition("Examples:")[2].strip().splitlines()
    assert examples
    assert all(f"corral {' '.join(path)}" in line for line in examples if len(path) > 1 or path not in _groups())
    # What follows the name of a look-alike is its own: -o is Slurm's there.
    assert ("-o, --output" in result.stdout) == (path not in LOOK_ALIKES)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_lists_of_commands_are_not_cut(columns: str) -> None:
    for path in [(), *_groups()]:
        text = corral(*path, "--help", COLUMNS=columns).stdout
        lines = text.partition("  Examples:")[0].splitlines()
        assert [line for line in lines if line.endswith(("...", "…")) and "Usage" not in line] == []
        assert [line for line in lines if len(line) > int(columns)] == []


def _groups() -> set[tuple[str, ...]]:
    return {path for path, found in ALL.items() if hasattr(found, "commands")}


def test_every_command_of_the_design_is_there() -> None:
    daily = ["submit", "jobs", "show", "why", "logs", "stop", "start", "edit", "rm", "pin", "unpin", "move", "status"]
    tasks = ["allocate", "start-program", "release"]
    others = ["up", "login", "logout", "whoami", "passwd", "events", "about", "scores", "doctor", "version"]
    assert {(word,) for word in (*daily, *tasks, *others)} <= ALL.keys()
    for group, verbs in {
        "queue": "ls show create edit rm",
        "nodes": "ls cordon uncordon drain",
        "gpus": "ls reset-health",
        "user": "ls show create edit rm role disable",
        "permission-group": "ls create edit assign rm",
        "preset": "ls show run add rm",
        "files": "ls get",
        "provider": "ls create edit enable disable test people onboard rm",
        "key": "ls add rm",
        "licence": "show set rm",
        "quota": "show ls set",
        "flavor": "ls create edit rm",
        "package": "ls create edit rm",
        "token": "ls create rm",
        "config": "show check import",
        "completion": "show install",
    }.items():
        assert {(group, verb) for verb in verbs.split()} <= ALL.keys()


def loaded_by(args: str, names: tuple[str, ...]) -> list[str]:
    """The modules among these that are loaded once the program has answered."""
    script = (
        "import sys\n"
        "from corral.cli.entry import main\n"
        f"sys.argv = ['corral', *{args.split()!r}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print(*[name for name in {names!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def loaded_modules(script: str, *, exit_code: int = 0, **env: str) -> set[str]:
    """The modules that are loaded once a script has ended."""
    whole = f"import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n{script}"
    done = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, timeout=60, env={**os.environ, **env}
    )
    assert done.returncode == exit_code, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_a_command_loads_little_more_than_the_http_library() -> None:
    """The start of `corral jobs` is at most 1.3 times that of the HTTP library; the time itself is in `make bench`."""
    job = {"ended_at": "2026-01-01T00:00:00Z", "end_reason": "exit_code", "exit_code": 0, "message": "", "array": None}
    row = {"id": "j-1", "name": "one", "user": "ann", "state": "completed", "queue": "default", "priority": 5}
    rest = {"pinned_at": None, "nodes": 1, "gpus": 1, "created_at": "2026-01-01T00:00:00Z", "started_at": None}
    page = {"items": [{**job, **row, **rest, "image": None, "allocation": None}], "next_cursor": None}
    program = "import sys\nsys.argv = ['corral', 'jobs', '-a']\nfrom corral.cli.entry import main\nmain()"
    with scripted(lambda seen, before: as_json(page)) as server:
        loaded = loaded_modules(program, CORRAL_SERVER=server.url)
    bare = loaded_modules("import httpx")
    areas = {name.split(".")[2] for name in loaded if name.startswith("corral.client.") and name.count(".") == 3}
    assert {"pydantic", "pygments", "asyncio", "click", "rich.console"}.isdisjoint(loaded)
    assert areas == {"http", "jobs"}
    assert len(loaded) <= 1.3 * len(bare)


def test_every_place_has_the_commands_that_the_table_names() -> None:
    for place in PLACES:
        found = place.load()
        own = (place.name,) if place.name else tuple(_name_of(one) for one in found.registered_commands)
        assert place.words == own


def _name_of(entry: Any) -> str:
    return str(entry.name or entry.callback.__name__)


@pytest.mark.parametrize("args", ["--help", "submit --help", "queue create --help"])
def test_help_loads_nothing_heavy(args: str) -> None:
    """Milliseconds depend on the machine; what is loaded does not."""
    assert loaded_by(args, HEAVY) == []


def test_the_version_is_printed_without_loading_commands_or_their_parser() -> None:
    assert loaded_by("--version", (*HEAVY, "typer", "corral.cli.main", "corral.core.model")) == []
    printed = subprocess.run([sys.executable, "-m", "corral.cli.entry", "--version"], capture_output=True, text=True)
    assert printed.stdout == corral("--version").stdout


@pytest.mark.parametrize("typed", [[], ["-h"], ["--help"]])
def test_list_of_commands_is_printed_without_loading_the_commands(typed: list[str]) -> None:
    program = f"import sys\nsys.argv = ['corral', *{typed}]\nfrom corral.cli.entry import main\nmain()"
    areas = {
        name.split(".")[2]
        for name in loaded_modules(program, exit_code=0 if typed else 2)
        if name.startswith("corral.cli.")
    }
    assert areas == {"command_summaries", "command_table", "entry", "habits", "main", "terminal"}


def test_summaries_are_current_and_print_the_same_list_as_the_commands() -> None:
    script = load_script("command_summaries.py")
    assert script.TARGET.read_text(encoding="utf-8") == script.written(), "run: make openapi"
    listed: Any = typer.main.get_command(part_for(["--help"]))
    assert not listed.commands
    whole: Any = COMMAND
    helps = [group.get_help(typer.Context(group, **group.context_settings)) for group in (listed, whole)]
    assert helps[0] == helps[1]


def test_help_is_the_same_whether_it_is_asked_for_alone_or_among_options() -> None:
    assert corral("submit", "--gpus", "1", "--help").stdout == corral("submit", "-h").stdout


def test_help_for_the_program_is_left_to_the_program() -> None:
    result = corral("submit", "--gpus", "1", "python", "train.py", "--help")
    assert result.exit_code == 5
    assert "Usage:" not in result.output


def test_sections_keep_daily_work_first() -> None:
    text = corral("--help").stdout
    headings = ["Daily work:", "Queue:", "Cluster:", "Tasks that hold GPUs:", "People:", "Set-up:"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)


def test_nothing_typed_shows_the_help_and_counts_as_wrong_usage() -> None:
    result = corral()
    assert result.exit_code == 2
    assert "Daily work:" in result.stderr
    assert result.stdout == ""


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference(), (
        "run: python -m corral.cli.terminal.reference > docs/reference/cli.md"
    )


@pytest.mark.parametrize("before", [(), ("-o", "json"), ("--server", "queue", "--token=jobs"), ("--output", "json")])
def test_application_has_only_the_group_that_a_command_line_names(before: tuple[str, ...]) -> None:
    """And it is the same as in the whole."""
    for name in sorted({path[0] for path in ALL}):
        part = typer.main.get_command(part_for([*before, name, "jobs"]))
        assert isinstance(part, TyperGroup)
        assert len(part.commands) < 20
        found = dict(commands(part))
        assert {path for path in ALL if path[0] == name} == {path for path in found if path[0] == name}
        assert {option.name for option in found[name,].params} == {option.name for option in ALL[name,].params}


@pytest.mark.parametrize("typed", [["jbos"], ["-o"], ["-o", "jobs"], ["--server", "x", "-h"]])
def test_command_line_without_a_known_command_loads_all_commands(typed: list[str]) -> None:
    whole: Any = typer.main.get_command(part_for(typed))
    assert whole.commands.keys() == {path[0] for path in ALL if len(path) == 1}


def test_options_before_the_command_that_take_a_value_are_known() -> None:
    root = COMMAND
    valued = {name for option in root.params for name in option.opts if not getattr(option, "is_flag", False)}
    assert valued == VALUED_OPTIONS


def test_the_client_is_loaded_only_when_it_is_used() -> None:
    script = (
        "import sys, corral\n"
        "assert 'httpx' not in sys.modules and 'corral.client' not in sys.modules\n"
        "from corral import Client\n"
        "from corral.client.client import Client as same\n"
        "assert Client is same and 'httpx' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
