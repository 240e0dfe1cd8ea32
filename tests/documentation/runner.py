"""Runs the blocks of a page, in order, on a server of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corral.client.client import Client
from corral.client.http.errors import ApiProblem
from corral.client.jobs.jobs import LIVE_STATES
from tests.documentation.pages import COMMANDS, Block, Page, read_page
from tests.documentation.terminal import Terminal
from tests.integration.waiting import wait_until
from tests.servers.corral_server import PASSWORD, CorralServer

#: `make up` in the first terminal, which the reader leaves open: the same server in the background, on a free port.
MAKE = """#!/bin/bash
[ "$1" = up ] || exec /usr/bin/make "$@"
setsid corral up --port {port} ${{2#ARGS=}} >> '{log}' 2>&1 < /dev/null &
until curl -sf {url}/readyz > /dev/null; do kill -0 $!; sleep 0.05; done
"""
#: For what pages take for granted: `until-state JOB STATE` ends when the job has that state.
UNTIL_STATE = """#!/bin/bash
until corral show -o json "$1" | grep "\\"state\\": \\"$2\\"" > /dev/null; do sleep 0.1; done
"""
#: One interpreter for the Python blocks of a page: a block per line comes in, its exit and what it printed go out.
INTERPRETER = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    shown = io.StringIO()
    failed = False
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            exec(compile(json.loads(line), "block", "exec"), names)
        except Exception:
            failed = True
            traceback.print_exc()
    print(json.dumps([failed, shown.getvalue()]), flush=True)
"""


def run_page(name: str, directory: Path) -> str:
    """Run every block that is to be run; what the terminal showed. Fails with the first block that does."""
    page = read_page(name)
    with _reader(page, directory) as reader:
        return "".join(reader.run(block) for block in page.blocks if block.is_run or block.given)


class Reader:
    """Someone who follows a page."""

    def __init__(self, page: Page, terminal: Terminal) -> None:
        self._page = page
        self._terminal = terminal
        self._interpreter: subprocess.Popen[str] | None = None

    def run(self, block: Block) -> str:
        for commands in block.given:
            self._shell(block, self._page.filled(commands))
        if not block.is_run:
            return ""
        text = self._page.filled(block.text)
        if block.title is not None:
            self._write(block.title, text)
            return self._shell(block, "corral config check corral.yaml") if block.title == "corral.yaml" else ""
        if block.language in COMMANDS:
            return self._shell(block, _with_failures(block, self._page.filled(block.commands)))
        return self._python(block, text)

    def close(self) -> None:
        if self._interpreter is not None:
            self._interpreter.communicate(timeout=30)

    def _write(self, name: str, text: str) -> None:
        here = self._terminal.environment["PWD"]
        path = Path(here) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("$PWD", here), encoding="utf-8")

    def _shell(self, block: Block, script: str) -> str:
        code, output = self._terminal.run(script, ctrl_c_after=block.ctrl_c_after)
        assert code == 0 or block.ctrl_c_after is not None, f"{block.place} exits with {code}:\n{script}\n{output}"
        assert block.ctrl_c_after is None or block.ctrl_c_after in output, f"{block.place}:\n{script}\n{output}"
        assert "Traceback" not in output, f"{block.place}:\n{output}"
        return output

    def _python(self, block: Block, text: str) -> str:
        if self._interpreter is None:
            self._interpreter = subprocess.Popen(
                [sys.executable, "-c", INTERPRETER],
                env=self._terminal.environment,
                cwd=self._terminal.environment["PWD"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._interpreter.stdin is not None
        assert self._interpreter.stdout is not None
        print(json.dumps(text), file=self._interpreter.stdin, flush=True)
        failed, output = json.loads(self._interpreter.stdout.readline())
        assert not failed, f"{block.place}:\n{text}\n{output}"
        return str(output)


def _with_failures(block: Block, script: str) -> str:
    """The script, in which the commands that must fail do so without ending it."""
    lines = script.splitlines()
    for begin in block.fails:
        at = next(row for row, line in enumerate(lines) if line.startswith(begin))
        lines[at] = f"if {lines[at]}\nthen echo 'it did not fail'; exit 97\nfi"
    return "\n".join(lines)


@contextmanager
def _reader(page: Page, directory: Path) -> Iterator[Reader]:
    home, place, programs = directory / "home", directory / "work", directory / "bin"
    for each in (home, place, programs):
        each.mkdir(parents=True)
    server = CorralServer(home / ".local" / "share" / "corral", *(page.server or "").split())
    own = page.server == "none"
    log = directory / "make-up.log"
    _script(programs / "make", MAKE.format(port=server.port, url=server.url, log=log))
    _script(programs / "until-state", UNTIL_STATE)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("CORRAL_", "COLUMNS", "LINES"))}
    clean |= {
        "HOME": str(home),
        "PWD": str(place),
        "PATH": f"{programs}:{Path(sys.executable).parent}:{clean['PATH']}",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "CORRAL_SERVER": server.url,
        "CORRAL_ALLOW_ROOT": "true",
        "XDG_DATA_HOME": str(home / ".local" / "share"),
    }
    if not own:
        if page.settings is not None:
            server.home.mkdir(parents=True)
            (server.home / "corral.yaml").write_text(page.settings)
        server.start(PATH=clean["PATH"])
        clean["CORRAL_TOKEN"] = server.token()
    terminal = Terminal(directory=directory, environment=clean, password=lambda: _password(log))
    reader = Reader(page, terminal)
    try:
        yield reader
    except BaseException as error:
        try:
            _end(server, own)
        except Exception as later:  # noqa: BLE001 the page's own failure is the one to show
            error.add_note(f"and then: {later}")
        raise
    else:
        _end(server, own)
    finally:
        reader.close()


def _end(server: CorralServer, own: bool) -> None:
    """No job is left behind, nor the server."""
    lock = server.home / "server.lock"
    if own and not lock.exists():
        return
    try:
        with Client(server.url, server.token()) as client:
            for job in client.jobs.list(states=list(LIVE_STATES)):
                with suppress(ApiProblem):  # it ended meanwhile; what still lives fails the wait
                    client.jobs.stop(job["id"])
            wait_until(lambda: not list(client.jobs.list(states=list(LIVE_STATES))), "nothing waits or runs")
    finally:
        if own:
            os.kill(int(lock.read_text().split()[0]), signal.SIGKILL)
        else:
            server.kill()


def _password(log: Path) -> str:
    """The one-time password that the first terminal shows, once; later the reader's own."""
    if log.exists():
        text = log.read_text()
        found = re.search(r"one-time password:\s+(\S+)", text)
        if found:
            log.write_text("")
            return found[1]
    return PASSWORD


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
