"""The time that a command of the command line takes, against Python that loads the HTTP library and does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.live import LiveServer
from benchmarks.tables import Row, median, spread

RUNS = 12
HTTP_LIBRARY = ("-c", "import httpx")


def start_rows(server: LiveServer) -> list[Row]:
    corral = ("-c", "from corral.cli.entry import main; main()")
    env = {**os.environ, "CORRAL_SERVER": server.url, "CORRAL_TOKEN": server.token}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    commands = {
        "version": (*corral, "--version"),
        "help": (*corral, "--help"),
        "jobs": (*corral, "jobs", "-a"),
        "httpx": HTTP_LIBRARY,
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(RUNS + 1):
        # in turns, so that another load of the machine falls on all of them; the first one compiles the modules
        for name, arguments in commands.items():
            milliseconds = _run(arguments, env)
            if number:
                taken[name].append(milliseconds)
    version, listed, jobs, bare = (median(taken[name]) for name in commands)
    return [
        Row(
            what="`corral --version`",
            value=f"{version:.0f} ms",
            spread=spread(taken["version"], "ms", 0),
            target="≤ 150 ms",
        ),
        Row(
            what="`corral --help`",
            value=f"{listed:.0f} ms",
            spread=spread(taken["help"], "ms", 0),
            target="≤ `corral jobs -a`",
            ratio=f"{listed / jobs:.2f} × `corral jobs -a`",
        ),
        Row(
            what="`corral jobs -a` with 50 rows",
            value=f"{jobs:.0f} ms",
            spread=spread(taken["jobs"], "ms", 0),
            target="≤ 1.3 ×",
            ratio=f"{jobs / bare:.2f} × python -c 'import httpx'",
        ),
    ]


def _run(arguments: Sequence[str], env: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=env, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1000
